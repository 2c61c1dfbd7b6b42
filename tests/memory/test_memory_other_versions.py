"""Rows that another version of artoo wrote."""

from __future__ import annotations

import json

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, TLayerProposal
from artoo.memory.service import SharedMemory
from artoo.store.query import Query
from artoo.testing.clock import FakeClock

NOW = FakeClock().now()
PROPOSALS = {name: TLayerProposal(id=name, proposed_at=NOW, text="x", rule_ids=("r",)) for name in ("p1", "p2")}
REPORTS = {name: DreamReport(dream_id=name, started_at=NOW, finished=True) for name in ("d1", "d2")}


def row(record: TLayerProposal | DreamReport, *, newer: bool) -> str:
    fields = json.loads(record.model_dump_json())
    return json.dumps({**fields, "newer_field": 1} if newer else fields)


async def test_what_cannot_be_read_is_skipped(memory: SharedMemory) -> None:
    """An unknown field costs its own row."""

    def work(query: Query) -> None:
        for name, proposal in PROPOSALS.items():
            values = (name, "open", row(proposal, newer=name == "p1"))
            query.run("INSERT INTO memory_proposals (id, status, proposal) VALUES (?, ?, ?)", values)
        for name, report in REPORTS.items():
            query.run(
                "INSERT INTO memory_reports (id, report) VALUES (?, ?)", (name, row(report, newer=name == "d2"))
            )

    memory.engine.write(work)
    seen = await memory.books.overview(NOW)
    assert ([one.id for one in seen.proposals], [one.dream_id for one in seen.reports]) == (["p2"], ["d1"])
    assert [one.id for one in await memory.books.open_proposals()] == ["p2"]
    with pytest.raises(MemoryStoreError, match="There is no proposal p1"):
        await memory.books.answer_proposal("p1", accept=True)
    assert (await memory.books.answer_proposal("p2", accept=True)).status == "accepted"
    with pytest.raises(MemoryStoreError, match="accepted already"):
        await memory.books.answer_proposal("p2", accept=False)
