"""Rows that another version of artoo wrote, on both engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, TLayerProposal
from artoo.memory import keys
from artoo.memory.books import EmbeddedBooks
from artoo.memory.postgres.service import PostgresMemory
from artoo.ports.memory_books import MemoryBooks
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

NOW = FakeClock().now()
PROPOSALS = {name: TLayerProposal(id=name, proposed_at=NOW, text="x", rule_ids=("r",)) for name in ("p1", "p2")}
REPORTS = {name: DreamReport(dream_id=name, started_at=NOW, finished=True) for name in ("d1", "d2")}


def row(record: TLayerProposal | DreamReport, *, newer: bool) -> str:
    fields = json.loads(record.model_dump_json())
    return json.dumps({**fields, "newer_field": 1} if newer else fields)


async def reads_what_it_can(books: MemoryBooks) -> None:
    """One row each is of a version that this one does not know."""
    seen = await books.overview(NOW)
    assert ([one.id for one in seen.proposals], [one.dream_id for one in seen.reports]) == (["p2"], ["d1"])
    assert [one.id for one in await books.open_proposals()] == ["p2"]
    with pytest.raises(MemoryStoreError, match="There is no proposal p1"):
        await books.answer_proposal("p1", accept=True)
    assert (await books.answer_proposal("p2", accept=True)).status == "accepted"


async def test_the_embedded_store_skips_what_it_cannot_read(tmp_path: Path) -> None:
    """An unknown field costs its own row."""
    books = EmbeddedBooks.open(tmp_path)
    for name, proposal in PROPOSALS.items():
        raw = row(proposal, newer=name == "p1").encode()
        books.environment.write(lambda txn, name=name, raw=raw: txn.put(keys.proposal(name), raw))
    for name, report in REPORTS.items():
        raw = row(report, newer=name == "d2").encode()
        books.environment.write(lambda txn, name=name, raw=raw: txn.put(keys.report(name), raw))
    await reads_what_it_can(books)
    await books.close()


async def test_the_shared_store_skips_what_it_cannot_read(store: StoreAddress, tmp_path: Path) -> None:
    """As the embedded one does."""
    memory = PostgresMemory(store, tmp_path, FakeClock(), SequentialIds())
    await memory.books.overview(NOW)  # which makes the tables
    with connect(store) as connection:
        for name, proposal in PROPOSALS.items():
            values = (name, "open", row(proposal, newer=name == "p1"))
            connection.execute(b"INSERT INTO memory_proposals (id, status, proposal) VALUES (%s, %s, %s)", values)
        for name, report in REPORTS.items():
            values = (name, row(report, newer=name == "d2"))
            connection.execute(b"INSERT INTO memory_reports (id, report) VALUES (%s, %s)", values)
    await reads_what_it_can(memory.books)
    await memory.close()
