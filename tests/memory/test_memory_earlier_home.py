"""A store that an earlier version made goes on: `lmdb_home/`, which `make_lmdb_home.py` wrote in that version."""

from __future__ import annotations

import fcntl
import gzip
import json
import sys
from collections.abc import AsyncGenerator
from decimal import Decimal
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import MemoryAction
from artoo.contracts.tags import Pair
from artoo.memory.books import Books
from artoo.memory.codec import decode
from artoo.memory.engines import engine_at
from artoo.memory.opening import open_store
from artoo.memory.service import SharedMemory
from artoo.memory.signal import microseconds
from artoo.memory.tables import COLUMNS, values
from artoo.store import schema
from artoo.store.connecting import connect
from artoo.store.schema import migrate, steps
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds
from postgres_server import Server

HOME = Path(__file__).parent / "lmdb_home"


def earlier_home(directory: Path) -> Path:
    """A copy of the file."""
    directory.mkdir()
    (directory / "data.mdb").write_bytes(gzip.decompress((HOME / "data.mdb.gz").read_bytes()))
    return directory


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SharedMemory]:
    """A copy of it, opened by this version sixteen hours later."""
    earlier_home(tmp_path / "memory")
    clock = FakeClock()
    clock.advance(16 * 3_600)
    opened = await open_store(tmp_path / "memory", tmp_path / "spool", clock, SequentialIds())
    yield opened
    await opened.close()


async def test_every_entry_is_there(store: SharedMemory) -> None:
    """What that version exported, this one exports, and it finds the store sound."""
    exported = [line async for line in store.books.exported()]
    assert exported == (HOME / "exported.jsonl").read_bytes().splitlines()
    assert (await store.books.examine()).sound


async def test_its_kinds_go_on_under_their_labels(store: SharedMemory) -> None:
    """Kinds of which no request is known are told by their labels, and their lessons count as before."""
    assert {each.label for each in await store.requests()} == {"find_all_pdf", "count_the_words"}
    advice = await store.calibrate("find_all_pdf", [Pair("tool:glob", "intent:find_all_pdf")])
    assert Pair("tool:glob", "intent:find_all_pdf") in {each.pair for each in advice.should_prefer}
    live = await store.query_mk("tool:curl", "intent:count_the_words")
    assert live.action is MemoryAction.AVOID and live.decision == pytest.approx(-2.55, rel=0.02)


async def test_rules_reports_and_proposals_are_there(store: SharedMemory) -> None:
    """The rule with its recall and the word against it, the Dreamer's report, the open proposal and its mark."""
    (rule,) = await store.query_c("tool:curl", "env:local")
    assert rule.last_recalled_at is not None
    assert (await store.query_mk("tool:curl", "env:local")).decision > 0
    found = await store.books.overview(FakeClock().now())
    assert [each.examined for each in found.reports] == [7]
    assert [each.text for each in found.proposals] == ["Look before you write."]
    assert await store.dreams().mark("proposed:r") == "p1"
    assert await store.dreams().mark("cursor:forget") is None  # a place in that file's order


async def test_without_its_reader_the_home_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the old file is an extra: who lacks it is told how to get it, and how to begin anew."""
    earlier_home(tmp_path / "memory")
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(MemoryStoreError, match=r"pip install 'artoo\[lmdb\]'.*\n?.*begin anew: mv "):
        engine_at(tmp_path / "memory")
    assert (tmp_path / "memory" / "data.mdb").exists()


async def test_a_home_is_taken_over_once(tmp_path: Path) -> None:
    """Not while an earlier version has it open; and what was cut short before the renaming is not copied again."""
    place = earlier_home(tmp_path / "memory")
    with (place / "presence").open("w") as presence:
        fcntl.flock(presence, fcntl.LOCK_SH)
        with pytest.raises(MemoryStoreError, match="earlier version uses the memory"):
            engine_at(place)
    engine_at(place).close()
    assert {path.name for path in place.iterdir()} == {"data.mdb.old", "memory.db"}
    (place / "data.mdb.old").rename(place / "data.mdb")
    books = Books(engine_at(place))
    gone = json.loads((HOME / "exported.jsonl").read_bytes().splitlines()[0])["id"]
    await books.forget_one(gone)
    await books.close()
    again = Books(engine_at(place))
    assert await again.forget_one(gone) is None and (await again.examine()).sound
    await again.close()


async def test_what_an_earlier_version_learns_afterwards_is_taken_over_too(tmp_path: Path) -> None:
    """Who goes back to that version, and later to this one, has what both have learnt."""
    place = earlier_home(tmp_path / "memory")
    books = Books(engine_at(place))
    lines = (HOME / "exported.jsonl").read_bytes().splitlines()
    gone = json.loads(lines[0])["id"]
    await books.forget_one(gone)
    await books.close()
    (place / "data.mdb").write_bytes(gzip.decompress((HOME / "data.mdb.gz").read_bytes()))
    books = Books(engine_at(place))
    assert [line async for line in books.exported()] == lines and (await books.examine()).sound
    await books.close()


async def test_an_earlier_store_goes_on(postgres: Server) -> None:
    """A PostgreSQL store whose database kept the sums itself is brought up to date: same entries, exact sums."""
    address = postgres.new_database("template0")
    now, later = steps(), 30
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(schema, "steps", lambda: tuple(step for step in now if step.version < later))
        migrate(address)
    lines = (HOME / "exported.jsonl").read_bytes().splitlines()
    names = [name for name in COLUMNS if name not in ("attention", "decision")]
    with connect(address) as connection:
        for megram in map(decode, lines):
            row = values(megram)
            shares = [Decimal(int(str(row[name]))) / (1 << 64) for name in ("attention", "decision")]
            at = microseconds(megram.last_recalled_at) if megram.last_recalled_at else None
            given = (*(row[name] for name in names), *shares, at)
            places = ", ".join(["%s"] * len(given))
            columns = ", ".join((*names, "attention", "decision", "recalled_us"))
            asked = f"INSERT INTO memory_megrams ({columns}) VALUES ({places})"
            connection.execute(asked.encode(), given)
    migrate(address)
    books = Books(engine_at(address))
    assert [line async for line in books.exported()] == lines
    found = await books.examine()
    assert found.sound, found.examples
    await books.close()
    postgres.drop(address)
