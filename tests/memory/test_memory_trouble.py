from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory import keys
from artoo.memory.absent import NoMemory
from artoo.memory.environment import Transaction, open_environment
from artoo.memory.opening import open_memory
from artoo.memory.service import SharedMemory
from artoo.memory.verify import examine, repair
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

Make = Callable[..., Megram]

GLOB = tool_pair("glob")


async def filled(directory: Path, make: Make, clock: FakeClock, ids: SequentialIds, count: int = 2_000) -> None:
    """A closed store with `count` megrams."""
    memory = SharedMemory.open(directory, clock, ids, map_bytes=1 << 18)
    for _ in range(count):
        memory.write(make(GLOB, content="x" * 100))
    await memory.close()
    assert memory.statistics.lost == 0


async def test_the_map_grows(tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """A map that is far too small grows while writing; nothing is lost."""
    await filled(tmp_path, make, clock, ids)
    assert (tmp_path / "data.mdb").stat().st_size > 1 << 18
    environment = open_environment(tmp_path)
    found = examine(environment)
    environment.close()
    assert (found.records, found.sound) == (2_000, True)


async def test_growth_by_another_process_is_followed(
    tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """A process whose map is too small for what another one wrote follows, reading and writing."""
    memory = SharedMemory.open(tmp_path, clock, ids, map_bytes=1 << 18)
    memory.write(make(GLOB))
    await memory.flush()
    program = Path(__file__).with_name("writing_process.py")
    arguments = [sys.executable, str(program), str(tmp_path), "other", "3000", "0"]
    await asyncio.to_thread(subprocess.run, arguments, check=True, capture_output=True)
    assert (await memory.query_mk("tool:t0", "env:local")).attention > 100
    memory.write(make(GLOB))
    await memory.flush()
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(1.8)
    await memory.close()


def test_a_full_disk_is_named_and_survived(tmp_path: Path) -> None:
    """When the disk is full the writes are lost with a clear error, reading goes on, and so does a later write."""
    code = f"""
import asyncio, resource, signal
from pathlib import Path
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram, MegramState
from artoo.memory.opening import open_memory
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
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
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
    environment = open_environment(tmp_path)
    assert examine(environment).sound
    environment.close()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "stub": lambda raw: raw[:100],
    "cut": lambda raw: raw[: len(raw) // 2],
    "garbage": lambda raw: b"garbage!" * 5_000,
    "pages": lambda raw: raw[:8_192] + b"\xff" * (len(raw) - 8_192),
    "head": lambda raw: bytes(16) + raw[16:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_file_is_named(
    damage: Callable[[bytes], bytes], tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """A damaged file raises an error that names it and says what to do; it does not end the process."""
    await filled(tmp_path, make, clock, ids)
    data = tmp_path / "data.mdb"
    data.write_bytes(damage(data.read_bytes()))
    with pytest.raises(MemoryStoreError, match=r"data\.mdb.* is damaged: .*Move it away"):
        SharedMemory.open(tmp_path, clock, ids)
    data.unlink()
    fresh = SharedMemory.open(tmp_path, clock, ids)
    assert (await fresh.query_mk(*GLOB)).attention == 0
    await fresh.close()


async def test_an_unsealed_store_is_checked_and_opened(
    tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """After a crash there is no seal; a sound file opens all the same."""
    await filled(tmp_path, make, clock, ids)
    (tmp_path / "seal").unlink()
    memory = SharedMemory.open(tmp_path, clock, ids)
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(1_800)
    await memory.close()


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A store that cannot be made names its directory."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryStoreError, match="file"):
        open_environment(tmp_path / "file" / "memory")


async def test_verify_finds_and_mends(tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """Wrong sums, missing and stray index entries and unreadable records are found, named and repaired."""
    await filled(tmp_path, make, clock, ids, count=20)
    environment = open_environment(tmp_path)
    part = keys.pair_part(GLOB)
    megram = make(GLOB)

    def spoil(transaction: Transaction) -> None:
        first = keys.split_last(next(iter(_keys(transaction, b"m|"))))[1]
        transaction.put(keys.record(first), b"{not json")
        second = keys.split_last(list(_keys(transaction, b"m|"))[1])[1]
        transaction.delete(keys.evidence(part, second))
        transaction.put(keys.evidence(part, megram.id), b"rubbish-that-is-no-signal")
        transaction.put(keys.level("M", "nobody"), b"")
        transaction.put(keys.sums(b"tool:ghost|env:local"), b"")
        transaction.put(keys.sums(part), b"\x01" * 40)

    environment.write(spoil)
    found = examine(environment)
    assert not found.sound
    assert found.unreadable == 1 and found.missing_index >= 1 and found.stray_index >= 2 and found.wrong_sums >= 1
    assert found.examples
    repair(environment)
    after = examine(environment)
    environment.close()
    assert after.sound, after.examples
    assert after.records == 19
    memory = SharedMemory.open(tmp_path, clock, ids)
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(19 * 0.9)
    await memory.close()


async def test_one_damaged_pair_does_not_stop_the_others(embedded: SharedMemory, make: Make) -> None:
    """Writes to a pair whose sums cannot be read are lost and counted; the rest of their batch is stored."""
    embedded.write(make(GLOB))
    await embedded.flush()
    part = keys.pair_part(GLOB)
    embedded.environment.write(lambda transaction: transaction.put(keys.sums(part), b"??"))
    for number in range(10):
        embedded.write(make(GLOB if number == 5 else tool_pair("other")))
    with pytest.raises(MemoryStoreError, match="verify"):
        await embedded.flush()
    assert embedded.statistics.lost == 1
    assert (await embedded.query_mk(*tool_pair("other"))).attention == pytest.approx(9 * 0.9)
    with pytest.raises(MemoryStoreError, match="verify"):
        await embedded.query_mk(*GLOB)


async def test_a_task_goes_on_without_memory(tmp_path: Path, clock: FakeClock, ids: SequentialIds) -> None:
    """Opening for a task never fails: an unusable store gives no memory and the reason."""
    (tmp_path / "data.mdb").write_bytes(b"not a store" * 1_000)
    absent = await open_memory(tmp_path, tmp_path, clock, ids)
    assert isinstance(absent, NoMemory) and "damaged" in absent.reason
    (tmp_path / "data.mdb").unlink()
    memory = await open_memory(tmp_path, tmp_path, clock, ids)
    assert isinstance(memory, SharedMemory)
    await memory.close()


async def test_growth_has_an_end(
    tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that would outgrow its bound says so; what it holds can still be read."""
    monkeypatch.setattr("artoo.memory.environment.LARGEST_MAP_BYTES", 1 << 18)
    memory = SharedMemory.open(tmp_path, clock, ids, map_bytes=1 << 18)
    memory.write(make(GLOB))
    await memory.flush()
    for _ in range(2_000):
        memory.write(make(GLOB, content="x" * 1_000))
    with pytest.raises(MemoryStoreError, match="artoo memory dream"):
        await memory.flush()
    assert (await memory.query_mk(*GLOB)).attention >= 0.9
    await memory.close()


def test_dead_readers_are_forgotten(tmp_path: Path) -> None:
    """A process that is killed while it reads does not keep its slot."""
    environment = open_environment(tmp_path)
    code = f"""
import time
from pathlib import Path
from artoo.memory.environment import open_environment
open_environment(Path({str(tmp_path)!r})).read(lambda transaction: (print("reading", flush=True), time.sleep(600)))
"""
    reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None and reader.stdout.readline() == "reading\n"
    reader.kill()
    reader.communicate()
    assert environment.forget_dead_readers() == 1
    assert environment.forget_dead_readers() == 0
    environment.close()


def test_limits_are_restored() -> None:
    """The full-disk test leaves this process alone."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def _keys(transaction: Transaction, prefix: bytes) -> list[bytes]:
    with transaction.cursor() as cursor:
        cursor.set_range(prefix)
        return [key for key in cursor.iternext(values=False) if key.startswith(prefix)]
