from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory import verify
from artoo.memory.absent import NoMemory
from artoo.memory.engines import FILE, engine_at
from artoo.memory.opening import open_memory
from artoo.memory.service import SharedMemory
from artoo.store.query import Query
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

Make = Callable[..., Megram]

GLOB = tool_pair("glob")


async def filled(directory: Path, make: Make, clock: FakeClock, ids: SequentialIds, count: int = 2_000) -> None:
    """A closed store with `count` megrams."""
    memory = SharedMemory.open(directory, clock, ids)
    for _ in range(count):
        memory.write(make(GLOB, content="x" * 100))
    await memory.close()
    assert memory.statistics.lost == 0


def test_a_full_disk_is_named_and_survived(tmp_path: Path) -> None:
    """When the disk is full the writes are lost with a clear error, reading goes on, and so does a later write."""
    code = f"""
import asyncio, resource
from pathlib import Path
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram, MegramState
from artoo.memory.service import SharedMemory
from artoo.runtime.app.system import SystemClock, UuidIds

async def main():
    clock, ids = SystemClock(), UuidIds()
    memory = SharedMemory.open(Path({str(tmp_path)!r}), clock, ids)
    def write(count):
        for _ in range(count):
            memory.write(Megram(id=ids.new(), created_at=clock.now(), space="tool:a", entity="env:local",
                                content="x" * 500, state=MegramState.ACCEPT, f=.9, sigma=1, k=.05))
    write(10)
    await memory.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
    write(5_000)
    try:
        await memory.flush()
        print("no error")
    except MemoryStoreError as error:
        print(error)
    print(memory.statistics.lost > 0, (await memory.query_mk("tool:a", "env:local")).attention > 8)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    before = memory.statistics.written
    write(100)
    await memory.flush()
    print(memory.statistics.written - before)
    await memory.close()
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message, survived, written = ended.stdout.strip().splitlines()
    assert "The disk is full or failing" in message and str(tmp_path) in message
    assert (survived, written) == ("True True", "100")
    engine = engine_at(tmp_path)
    assert engine.read(verify.examine).sound
    engine.close()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "garbage": lambda raw: b"garbage!" * 5_000,
    "pages": lambda raw: raw[:4_096] + b"\xff" * (len(raw) - 4_096),
    "head": lambda raw: bytes(16) + raw[16:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_file_is_named(
    damage: Callable[[bytes], bytes], tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """A damaged file raises an error that names it and says what to do, when it is opened or read."""
    await filled(tmp_path, make, clock, ids)
    data = tmp_path / FILE
    data.write_bytes(damage(data.read_bytes()))
    with pytest.raises(MemoryStoreError, match=r"memory\.db.* is damaged\. Move it away"):
        await SharedMemory.open(tmp_path, clock, ids).books.examine()
    data.unlink()
    fresh = SharedMemory.open(tmp_path, clock, ids)
    assert (await fresh.query_mk(*GLOB)).attention == 0
    await fresh.close()


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A store that cannot be made names its directory; a file of another program is left alone."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryStoreError, match="file"):
        engine_at(tmp_path / "file" / "memory")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    other = engine_at(tmp_path)
    other.write(lambda query: query.run("PRAGMA application_id = 7"))
    other.close()
    with pytest.raises(MemoryStoreError, match="some other program"):
        engine_at(tmp_path)


async def test_verify_finds_and_mends(memory: SharedMemory, make: Make) -> None:
    """Wrong sums, wrong columns and unreadable records are found, named and repaired, on each engine."""
    made = [make(GLOB) for _ in range(20)]
    for megram in made:
        memory.write(megram)
    await memory.flush()

    def spoil(query: Query) -> None:
        query.run("UPDATE memory_megrams SET record = '{not json' WHERE id = ?", (made[0].id,))
        query.run("UPDATE memory_megrams SET state = 'abandon', space = ? WHERE id = ?", (b"ghost", made[1].id))
        query.run("UPDATE memory_sums SET attention = exact_sum(attention, '1')")
        names = "entity, k, epoch, kind, entries, latest_us, attention, decision"
        query.run(f"INSERT INTO memory_sums (space, {names}) SELECT ?, {names} FROM memory_sums", (b"nobody",))

    memory.engine.write(spoil)
    found = await memory.books.examine()
    assert (found.unreadable, found.missing_index) == (1, 1) and found.wrong_sums == 3, found.examples
    await memory.books.repair()
    after = await memory.books.examine()
    assert (after.sound, after.records) == (True, 19), after.examples
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(19 * 0.9)


async def test_one_damaged_pair_does_not_stop_the_others(embedded: SharedMemory, make: Make) -> None:
    """Writes to a pair whose sums cannot be read are lost and counted; the rest of their batch is stored."""
    embedded.write(make(GLOB))
    await embedded.flush()
    embedded.engine.write(lambda query: query.run("UPDATE memory_sums SET attention = '??'"))
    for number in range(10):
        embedded.write(make(GLOB if number == 5 else tool_pair("other")))
    with pytest.raises(MemoryStoreError, match="user-defined function"):
        await embedded.flush()
    assert embedded.statistics.lost == 1
    assert (await embedded.query_mk(*tool_pair("other"))).attention == pytest.approx(9 * 0.9)
    with pytest.raises(MemoryStoreError, match="verify"):
        await embedded.query_mk(*GLOB)


async def test_a_task_goes_on_without_memory(tmp_path: Path, clock: FakeClock, ids: SequentialIds) -> None:
    """Opening for a task never fails: an unusable store gives no memory and the reason."""
    (tmp_path / FILE).write_bytes(b"not a store" * 1_000)
    absent = await open_memory(tmp_path, tmp_path, clock, ids)
    assert isinstance(absent, NoMemory) and "damaged" in absent.reason
    (tmp_path / FILE).unlink()
    memory = await open_memory(tmp_path, tmp_path, clock, ids)
    assert isinstance(memory, SharedMemory)
    await memory.close()
