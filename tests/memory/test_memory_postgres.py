from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Level, Megram, MemoryAction
from artoo.contracts.tags import tool_pair
from artoo.memory.dreams import Dreams
from artoo.memory.opening import open_memory
from artoo.memory.service import SharedMemory
from artoo.memory.spool import MemorySpool
from artoo.ports.dream import DreamingElsewhere
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds
from postgres_server import Server

Make = Callable[..., Megram]

GLOB, CURL = tool_pair("glob"), tool_pair("curl")
TOGETHER = [tool_pair(f"t{number}") for number in range(5)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is away is looked for again at once."""
    monkeypatch.setattr("artoo.memory.spool.RETRY_SECONDS", 0.02)
    monkeypatch.setattr("artoo.store.postgres.AWAY_SECONDS", 0.0)
    monkeypatch.setattr("artoo.store.postgres.WAITING_SECONDS", 0.3)


async def writers_at_once(
    store: StoreAddress, place: Path, make: Make, clock: FakeClock, *, writers: int, each: int
) -> None:
    """Every writer has connections of its own, the same pairs, and an eighth of what its neighbour writes."""
    opened = [SharedMemory.shared(store, place / str(number), clock, SequentialIds()) for number in range(writers)]
    pairs = [*TOGETHER, *reversed(TOGETHER)]
    rules = [make(pair, level=Level.COMMON_SENSE) for pair in TOGETHER]
    mine = [[make(pairs[at % len(pairs)], "refine" if at % 3 else "accept") for at in range(each)] for _ in opened]
    for rule in rules:
        opened[0].write(rule)
    await opened[0].flush()
    clock.advance(1.0)

    async def work(number: int) -> None:
        memory, twice = opened[number], mine[(number + 1) % writers][: each // 8]
        for at, megram in enumerate((*mine[number], *twice)):
            memory.write(megram)
            if at % 50 == 49:
                await memory.calibrate("x", pairs)  # which restarts the clocks of the rules
                await memory.flush()
        await memory.flush()

    async def dream() -> None:
        dreams = opened[0].dreams()
        async with dreams.turn():
            for _ in range(10):
                listed = await dreams.fading(None, 64, lambda entry: True)
                await dreams.forget([entry.megram_id for entry in listed.found], lambda entry: entry.k == 7)
                await asyncio.sleep(0)

    await asyncio.gather(*(work(number) for number in range(writers)), dream())
    embedded = SharedMemory.open(place / "embedded", clock, SequentialIds())
    for megram in (*rules, *(megram for listed in mine for megram in listed)):
        embedded.write(megram)
    await embedded.flush()
    assert await opened[0].potentials_of(TOGETHER) == await embedded.potentials_of(TOGETHER)
    found = await opened[0].books.examine()
    assert (found.records, found.sound) == (writers * each + len(rules), True), found.examples
    assert [memory.statistics.lost for memory in opened] == [0] * writers
    for memory in (*opened, embedded):
        await memory.close()
    with connect(store) as connection:
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None and row["deadlocks"] == 0


async def test_eight_writers_lose_nothing(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock
) -> None:
    """Eight writers at once on the same pairs, ids and rules: all is there once, sums are exact, no deadlock."""
    await writers_at_once(store, tmp_path, make, clock, writers=8, each=160)


@pytest.mark.torture
async def test_eight_writers_at_length(store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock) -> None:
    """The same with 8,000 megrams each."""
    await writers_at_once(store, tmp_path, make, clock, writers=8, each=8_000)


@pytest.mark.usefixtures("impatient")
async def test_what_is_written_while_the_store_is_away_is_there_later(
    postgres: Server, store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Writing goes on while the store is away, reading says so at once, and all is written when it is back."""
    memory = SharedMemory.shared(store, tmp_path / "spool", clock, ids)
    rule = make(CURL, level=Level.COMMON_SENSE)
    memory.write(make(GLOB))
    memory.write(rule)
    await memory.flush()
    postgres.end()
    try:
        memory.write(make(GLOB))
        memory.record_negative_feedback(rule.id, "not any more")
        await memory.flush()
        assert not MemorySpool(tmp_path / "spool").is_empty()
        with pytest.raises(MemoryStoreError, match="what is under way goes on"):
            await memory.query_mk(*GLOB)
    finally:
        postgres.run()
    await _until(MemorySpool(tmp_path / "spool").is_empty)
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(1.8)
    assert (await memory.query_mk(*CURL)).decision == pytest.approx(-0.9)
    assert memory.statistics.lost == 0
    assert "kept on this machine" in caplog.text and "is back; 2 entries" in caplog.text
    await memory.close()


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_was_started_anew_is_read_at_once(
    tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """Connections that died while they were idle fail no reading, of one statement or of a whole snapshot."""
    server = await asyncio.to_thread(Server.start)
    try:
        memory = SharedMemory.shared(server.new_database(), tmp_path / "spool", clock, ids)
        memory.write(make(GLOB))
        await memory.flush()
        for read in (lambda: memory.query_mk(*GLOB), memory.books.examine):
            await read()
            await asyncio.to_thread(server.end)
            await asyncio.to_thread(server.run)
            await read()
        await memory.close()
    finally:
        server.stop()


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_killed_loses_nothing(tmp_path: Path, make: Make, clock: FakeClock) -> None:
    """Four writers go on while the server is killed three times: everything is there once, and sums are exact."""
    server = await asyncio.to_thread(Server.start, synchronous_commit="on")
    try:
        store, written = server.new_database(), 0
        opened = [SharedMemory.shared(store, tmp_path / str(number), clock, SequentialIds()) for number in range(4)]
        mine = [[make(TOGETHER[at % 5]) for at in range(150)] for _ in opened]

        async def work(number: int) -> None:
            nonlocal written
            for at, megram in enumerate(mine[number]):
                opened[number].write(megram)
                written += 1
                if at % 10 == 9:
                    await opened[number].flush()

        async def kill() -> None:
            for after in (100, 250, 400):
                await _until(lambda after=after: written >= after)
                await asyncio.to_thread(server.end, signal.SIGQUIT)
                await asyncio.to_thread(server.run)

        await asyncio.gather(*(work(number) for number in range(4)), kill())
        await _until(lambda: all(MemorySpool(each).is_empty() for each in tmp_path.glob("*")))
        found = await opened[0].books.examine()
        assert (found.records, found.sound) == (600, True), found.examples
        assert [live.attention for live in await opened[0].potentials_of(TOGETHER)] == pytest.approx([108.0] * 5)
        assert [memory.statistics.lost for memory in opened] == [0] * 4
        for memory in opened:
            await memory.close()
    finally:
        server.stop()


@pytest.mark.usefixtures("impatient")
async def test_a_dead_process_leaves_its_spool_to_the_next(
    postgres: Server, store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """What a process could not write is written by the next one of this home, of an earlier version as well."""
    postgres.end()
    try:
        first = SharedMemory.shared(store, tmp_path / "spool", clock, ids)
        for _ in range(3):
            first.write(make(GLOB))
        await first.close()
    finally:
        postgres.run()
    line = json.dumps({"what": "append", "megram": make(GLOB).model_dump(mode="json")})
    await asyncio.to_thread((tmp_path / "spool" / "earlier.jsonl").write_text, line + '\n{"what": "append", "megr')
    second = SharedMemory.shared(store, tmp_path / "spool", clock, ids)
    second.write(make(CURL))
    await second.flush()
    assert (await second.query_mk(*GLOB)).attention == pytest.approx(3.6)
    assert MemorySpool(tmp_path / "spool").is_empty()
    await second.close()


@pytest.mark.usefixtures("impatient")
async def test_a_full_spool_says_what_is_lost(
    postgres: Server, store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The spool is bounded: what has no room is lost, counted, and said by flush."""
    monkeypatch.setattr("artoo.memory.spool.MOST_BYTES", 2_000)
    postgres.end()
    try:
        memory = SharedMemory.shared(store, tmp_path / "spool", clock, ids)
        for _ in range(20):
            memory.write(make(GLOB, content="x" * 200))
        with pytest.raises(MemoryStoreError, match="is full"):
            await memory.flush()
        assert memory.statistics.lost > 0
        await memory.close()
    finally:
        postgres.run()


async def test_a_past_turn_changes_nothing(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock
) -> None:
    """A Dreamer that slept beyond its lease finds another in its place, and its writes are refused."""
    memory = SharedMemory.shared(store, tmp_path, clock, SequentialIds())
    megram = make(GLOB)
    memory.write(megram)
    await memory.flush()
    asleep = Dreams(memory.engine, clock, lease_seconds=0.1)
    awake = Dreams(memory.engine, clock)
    async with asleep.turn():
        while True:
            try:
                async with awake.turn():
                    with pytest.raises(MemoryStoreError, match="turn to dream has ended"):
                        await asleep.forget([megram.id], lambda entry: True)
                    with pytest.raises(MemoryStoreError, match="turn to dream has ended"):
                        await asleep.set_mark("cursor", "x")
                break
            except DreamingElsewhere:
                await asyncio.sleep(0.01)
    with pytest.raises(MemoryStoreError, match="Only whoever holds the turn"):
        await awake.set_mark("cursor", "x")
    assert (await memory.query_mk(*GLOB)).action is MemoryAction.EXPLOIT
    await memory.close()


async def test_a_worker_may_remember(store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock) -> None:
    """The role of a machine that only works writes megrams, and the sums follow."""
    with connect(store) as connection:
        connection.execute("DROP ROLE IF EXISTS somebody")
        connection.execute("CREATE ROLE somebody LOGIN IN ROLE artoo_worker")
    somebody = StoreAddress(store.url.replace("postgres@", "somebody@"), store.hosts, None, None)
    memory = SharedMemory.shared(somebody, tmp_path, clock, SequentialIds())
    memory.write(make(GLOB))
    await memory.flush()
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(0.9)
    await memory.close()


async def test_memory_is_carried_over_and_back(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """What one engine exports the other imports, once: the same lines, the same potentials."""
    here = SharedMemory.open(tmp_path / "here", clock, ids)
    there = SharedMemory.shared(store, tmp_path / "spool", clock, ids)
    for state in ("accept", "abandon", "refine"):
        here.write(make(GLOB, state))
    here.write(make(CURL, level=Level.COMMON_SENSE))
    await here.flush()
    await here.query_c(*CURL)
    await here.flush()
    lines = [line async for line in here.books.exported()]
    assert await there.books.imported(lines) == (4, 0)
    assert await there.books.imported(lines) == (0, 4)
    assert [json.loads(line) async for line in there.books.exported()] == [json.loads(line) for line in lines]
    assert await there.potentials_of([GLOB, CURL]) == await here.potentials_of([GLOB, CURL])
    with pytest.raises(MemoryStoreError, match="Line 1 is no megram"):
        await there.books.imported([b"{}"])
    await here.close()
    await there.close()


async def test_a_touch_that_comes_late_sets_no_clock_back(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock
) -> None:
    """Two machines recall a rule; the later time stays, whichever arrives last."""
    slow = SharedMemory.shared(
        store, tmp_path / "slow", FakeClock(clock.now() - timedelta(days=1)), SequentialIds()
    )
    quick = SharedMemory.shared(store, tmp_path / "quick", clock, SequentialIds())
    quick.write(make(GLOB, level=Level.COMMON_SENSE))
    await quick.flush()
    for memory in (quick, slow):
        await memory.query_c(*GLOB)
        await memory.flush()
    (rule,) = await quick.query_c(*GLOB)
    assert rule.last_recalled_at == clock.now()
    await quick.close()
    await slow.close()


async def test_a_store_that_is_not_set_up_is_named(postgres: Server, tmp_path: Path, clock: FakeClock) -> None:
    """An empty database is no memory: readers are told the command that sets it up."""
    empty = postgres.new_database("template0")
    memory = await open_memory(empty, tmp_path, clock, SequentialIds())
    with pytest.raises(MemoryStoreError, match="artoo store init"):
        await memory.potentials_of([GLOB])
    await memory.close()
    postgres.drop(empty)


async def _until(state: Callable[[], bool]) -> None:
    while not state():  # noqa: ASYNC110 - another process's file
        await asyncio.sleep(0.01)
