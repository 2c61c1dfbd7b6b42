from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory import verify
from artoo.memory.commands import Append
from artoo.memory.engines import engine_at
from artoo.memory.spool import Sink
from artoo.memory.writer import Writer
from artoo.store.query import Engine

Make = Callable[..., Megram]

GLOB = tool_pair("glob")


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    """An empty store."""
    opened = engine_at(tmp_path)
    yield opened
    opened.close()


@contextmanager
def held(engine: Engine) -> Generator[None]:
    """The store is locked, as by a process that was stopped while it wrote."""
    begun, released = threading.Event(), threading.Event()
    holder = threading.Thread(target=lambda: engine.write(lambda query: (begun.set(), released.wait())))
    holder.start()
    begun.wait()
    try:
        yield
    finally:
        released.set()
        holder.join()


def records(engine: Engine) -> int:
    return engine.read(verify.examine).records


def test_a_full_queue_drops_and_counts(engine: Engine, make: Make) -> None:
    """Beyond its limit the queue drops the new, at once, and counts it; what was queued is stored."""
    writer = Writer(Sink(engine, None), limit=10)
    with held(engine):
        taken = sum(writer.submit(Append(make(GLOB))) for _ in range(15))
    assert writer.close()
    assert taken in range(10, 13)  # the writer may have taken one or two before it had to wait
    assert (writer.statistics.dropped, writer.statistics.written, records(engine)) == (15 - taken, taken, taken)


def test_closing_gives_up_on_a_stuck_store(engine: Engine, make: Make) -> None:
    """When the store's lock is not to be had, closing ends after its time and says that something is left."""
    writer = Writer(Sink(engine, None))
    with held(engine):
        writer.submit(Append(make(GLOB)))
        assert writer.close(timeout=0.01) is False
        assert writer.close() is True
    while not records(engine):
        pass


def test_a_bug_in_one_entry_costs_that_entry(engine: Engine, make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It is told and logged whole; what was queued beside it and what comes later is stored."""
    writer = Writer(Sink(engine, None))
    for megram in (make(GLOB), make(GLOB).model_copy(update={"created_at": None}), make(GLOB)):
        assert writer.submit(Append(megram))
    with pytest.raises(MemoryStoreError, match="TypeError"):
        writer.flush()
    writer.submit(Append(make(GLOB)))
    writer.flush()
    assert (writer.statistics.written, writer.statistics.lost, records(engine)) == (3, 1, 3)
    assert "met a bug" in caplog.text
    assert writer.close()


class Ending:
    """A time that ends its thread."""

    def __sub__(self, other: object) -> object:
        raise SystemExit


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_writer_is_noticed(engine: Engine, make: Make) -> None:
    """A thread that ended does not leave flush waiting for ever."""
    writer = Writer(Sink(engine, None))
    writer.submit(Append(make(GLOB).model_copy(update={"created_at": Ending()})))
    with pytest.raises(MemoryStoreError, match="ended unexpectedly"):
        writer.flush()
    assert writer.close() is True


def test_nothing_starts_for_readers(engine: Engine) -> None:
    """A writer that is never used has no thread."""
    before = threading.active_count()
    writer = Writer(Sink(engine, None))
    writer.flush()
    assert threading.active_count() == before
    writer.close()
