"""A store that an earlier version made goes on: `lmdb_home/`, which `make_lmdb_home.py` wrote in that version."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from artoo.contracts.memory import MemoryAction
from artoo.contracts.tags import Pair
from artoo.memory.opening import open_store
from artoo.memory.store import MemoryStore
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

HOME = Path(__file__).parent / "lmdb_home"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[MemoryStore]:
    """A copy of it, opened by this version sixteen hours later."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "data.mdb").write_bytes(gzip.decompress((HOME / "data.mdb.gz").read_bytes()))
    clock = FakeClock()
    clock.advance(16 * 3_600)
    opened = await open_store(tmp_path / "memory", tmp_path / "spool", clock, SequentialIds())
    yield opened
    await opened.close()


async def test_every_entry_is_there(store: MemoryStore) -> None:
    """What that version exported, this one exports, and it finds the store sound."""
    exported = [line async for line in store.books.exported()]
    assert exported == (HOME / "exported.jsonl").read_bytes().splitlines()
    assert (await store.books.examine()).sound


async def test_its_kinds_go_on_under_their_labels(store: MemoryStore) -> None:
    """Kinds of which no request is known are told by their labels, and their lessons count as before."""
    assert {each.label for each in await store.requests()} == {"find_all_pdf", "count_the_words"}
    advice = await store.calibrate("find_all_pdf", [Pair("tool:glob", "intent:find_all_pdf")])
    assert Pair("tool:glob", "intent:find_all_pdf") in {each.pair for each in advice.should_prefer}
    live = await store.query_mk("tool:curl", "intent:count_the_words")
    assert live.action is MemoryAction.AVOID and live.decision == pytest.approx(-2.55, rel=0.02)


async def test_rules_reports_and_proposals_are_there(store: MemoryStore) -> None:
    """The rule with its recall and the word against it, the Dreamer's report and mark, the open proposal."""
    (rule,) = await store.query_c("tool:curl", "env:local")
    assert rule.last_recalled_at is not None
    assert (await store.query_mk("tool:curl", "env:local")).decision > 0
    found = await store.books.overview(FakeClock().now())
    assert [each.examined for each in found.reports] == [7]
    assert [each.text for each in found.proposals] == ["Look before you write."]
    assert await store.dreams().mark("cursor:forget") == "12"
