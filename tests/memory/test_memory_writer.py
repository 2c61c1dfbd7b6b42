from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory.commands import Append
from artoo.memory.environment import Transaction, open_environment
from artoo.memory.gate import Gate
from artoo.memory.ledger import Ledger
from artoo.memory.service import SharedMemory
from artoo.memory.sink import LedgerSink
from artoo.memory.verify import examine
from artoo.memory.writer import Writer
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

Make = Callable[..., Megram]

GLOB = tool_pair("glob")


class Held:
    """A command that keeps the writer busy until it is released."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def apply(self, ledger: Ledger) -> bool:
        """Waits."""
        self.begun.set()
        return self.released.wait()


class Failing:
    """A command with a bug."""

    def apply(self, ledger: Ledger) -> bool:
        """Fails as no command should."""
        raise ZeroDivisionError


class Ending:
    """A command that ends its thread."""

    def apply(self, ledger: Ledger) -> bool:
        """Does what no bug can."""
        raise SystemExit


def test_a_full_queue_drops_and_counts(tmp_path: Path, make: Make) -> None:
    """Beyond its limit the queue drops the new, at once, and counts it; what was queued is stored."""
    environment = open_environment(tmp_path)
    writer = Writer(LedgerSink(environment), limit=10)
    held = Held()
    writer.submit(held)
    held.begun.wait()
    results = [writer.submit(Append(make(GLOB))) for _ in range(15)]
    assert results == [True] * 10 + [False] * 5
    held.released.set()
    writer.close()
    assert (writer.statistics.dropped, writer.statistics.written) == (5, 11)
    assert examine(environment).records == 10
    environment.close()


def test_closing_gives_up_on_a_stuck_store(tmp_path: Path, make: Make) -> None:
    """When the store's lock is not to be had, closing ends after its time and says that something is left."""
    environment = open_environment(tmp_path)
    writer = Writer(LedgerSink(environment))
    held = Held()
    writer.submit(held)
    held.begun.wait()
    writer.submit(Append(make(GLOB)))
    assert writer.close(timeout=0.01) is False
    assert writer.close() is True
    held.released.set()
    while examine(environment).records == 0:
        pass
    environment.close()


def test_a_bug_in_one_entry_costs_that_entry(tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It is told and logged whole; what was queued beside it and what comes later is stored."""
    environment = open_environment(tmp_path)
    writer = Writer(LedgerSink(environment))
    for command in (Append(make(GLOB)), Failing(), Append(make(GLOB))):
        assert writer.submit(command)
    with pytest.raises(MemoryStoreError, match="ZeroDivisionError"):
        writer.flush()
    writer.submit(Append(make(GLOB)))
    writer.flush()
    assert (writer.statistics.written, writer.statistics.lost) == (3, 1)
    assert "met a bug" in caplog.text
    assert writer.close()
    environment.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_writer_is_noticed(tmp_path: Path) -> None:
    """A thread that ended does not leave flush waiting for ever."""
    environment = open_environment(tmp_path)
    writer = Writer(LedgerSink(environment))
    writer.submit(Ending())
    with pytest.raises(MemoryStoreError, match="ended unexpectedly"):
        writer.flush()
    assert writer.close() is True
    environment.close()


def test_nothing_starts_for_readers(tmp_path: Path) -> None:
    """A writer that is never used has no thread."""
    environment = open_environment(tmp_path)
    before = threading.active_count()
    writer = Writer(LedgerSink(environment))
    writer.flush()
    assert threading.active_count() == before
    writer.close()
    environment.close()


def test_the_map_moves_only_when_nobody_looks() -> None:
    """The gate's exclusive side waits for transactions inside and keeps new ones out."""
    gate, inside, order = Gate(), threading.Event(), list[str]()
    leave = threading.Event()

    def look() -> None:
        with gate.shared():
            inside.set()
            leave.wait()
            order.append("looked")

    def move() -> None:
        with gate.exclusive():
            order.append("moved")

    looking, moving = threading.Thread(target=look), threading.Thread(target=move)
    looking.start()
    inside.wait()
    moving.start()
    leave.set()
    looking.join()
    moving.join()
    with gate.shared():
        order.append("after")
    assert order == ["looked", "moved", "after"]


async def test_growth_under_readers(tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """While one thread makes the map grow many times, readers in others see whole snapshots and no errors."""
    memory = SharedMemory.open(tmp_path, clock, ids, map_bytes=1 << 16)
    done = threading.Event()
    seen: list[float] = []

    def read() -> None:
        def count(transaction: Transaction) -> int:
            with transaction.cursor() as cursor:
                cursor.set_range(b"x|")
                return sum(1 for key in cursor.iternext(values=False) if key.startswith(b"x|"))

        # Threads that never rest would only measure how Python shares its lock.
        while not done.wait(0.002):
            seen.append(memory.environment.read(count))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        for _ in range(200):
            memory.write(make(GLOB, content="x" * 300))
        await memory.flush()
    done.set()
    for reader in readers:
        reader.join()
    assert (await memory.query_mk(*GLOB)).attention == pytest.approx(2_000 * 0.9)
    assert seen and max(seen) <= 2_000
    await memory.close()
