"""The writer thread of memory, with its queue and batch sizes.

A caller never waits for the store.

A batch is one transaction. A crash loses only the commands that are still in the queue. It never stores half of a
batch.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.codec import RecordDamaged
from artoo.memory.commands import Command
from artoo.memory.spool import Sink

QUEUE_LIMIT = 65_536
BATCH = 2_048
"""Maximum number of entries in one transaction. It locks the store for about 15 ms, and updates the sums of each
pair once."""
_PATIENCE = 0.5
"""Number of seconds between two checks whether the writer's thread is alive."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WriterStatistics:
    """Counts since the start. `dropped`: commands that were refused because the queue was full or closed. `lost`:
    commands that could not be stored."""

    queued: int = 0
    written: int = 0
    dropped: int = 0
    lost: int = 0
    last_error: str | None = None


@dataclass(slots=True)
class _Mark:
    """A mark in the queue. `reached` is set when all commands before it have been processed."""

    reached: threading.Event = field(default_factory=threading.Event)
    stop: bool = False


class Writer:
    """Takes commands from any thread, and applies them in order in a background thread."""

    def __init__(self, sink: Sink, *, limit: int = QUEUE_LIMIT, batch: int = BATCH) -> None:
        self.statistics = WriterStatistics()
        self._sink = sink
        self._limit = limit
        self._batch = batch
        self._queue: SimpleQueue[Command | _Mark] = SimpleQueue()
        self._closed = False
        self._in_burst = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def submit(self, command: Command) -> bool:
        """Put a command into the queue and return at once. Returns False if the command was refused."""
        if self._closed or self._queue.qsize() >= self._limit:
            self._drop()
            return False
        self._in_burst = False
        self.statistics.queued += 1
        self._queue.put(command)
        if self._thread is None:
            self._start()
        return True

    def flush(self) -> None:
        """Wait until all commands that were queued before have been processed.

        Raises MemoryStoreError if a command was lost since the last flush.
        """
        thread = self._thread
        if thread is not None:
            self._wait_for(_Mark(), thread, math.inf)
        self._raise_losses()

    def close(self, timeout: float = math.inf) -> bool:
        """Process all commands in the queue, and end the thread. Returns False if that took longer than `timeout`
        seconds. Idempotent."""
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            return True
        drained = self._wait_for(_Mark(stop=True), thread, timeout)
        if not drained:
            _log.warning("memory: %d entries could not be stored before closing", self._queue.qsize())
        return drained

    def _wait_for(self, mark: _Mark, thread: threading.Thread, timeout: float) -> bool:
        """Wait until the writer has reached `mark`. If its thread has died, the queued commands count as lost."""
        self._queue.put(mark)
        waited = 0.0
        while not mark.reached.wait(min(_PATIENCE, timeout)):
            waited += _PATIENCE
            if not thread.is_alive():
                self._lose(self._queue.qsize(), MemoryStoreError("The memory writer ended unexpectedly."))
                return True
            if waited >= timeout:
                return False
        return True

    def _raise_losses(self) -> None:
        error, self.statistics.last_error = self.statistics.last_error, None
        if error is not None:
            raise MemoryStoreError(error)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="artoo-memory", daemon=True)
                self._thread.start()

    def _drop(self) -> None:
        self.statistics.dropped += 1
        if not self._in_burst:
            self._in_burst = True
            _log.warning("memory: the write queue is full or closed; new megrams are dropped")

    def _run(self) -> None:
        stop = False
        while not stop:
            commands, marks = self._take(self._sink.again_after)
            self._store(commands)
            if any(mark.stop for mark in marks):
                self._sink.close()
                stop = True
            for mark in marks:
                mark.reached.set()

    def _take(self, patience: float | None) -> tuple[list[Command], list[_Mark]]:
        commands: list[Command] = []
        try:
            item = self._queue.get(timeout=patience)
        except Empty:
            # this stores the entries that the sink could not store before
            return [], []
        while True:
            if isinstance(item, _Mark):
                return commands, [item]
            commands.append(item)
            if len(commands) >= self._batch:
                return commands, []
            try:
                item = self._queue.get_nowait()
            except Empty:
                return commands, []

    def _store(self, commands: list[Command]) -> None:
        try:
            done = self._sink.store(commands)
        except RecordDamaged as error:
            self._isolate(commands, error)
        except MemoryStoreError as error:
            self._lose(len(commands), error)
        except Exception as error:  # noqa: BLE001 - a bug that ended the thread would lose all that comes later
            _log.exception("memory: a batch of %d entries met a bug", len(commands))
            self._isolate(commands, MemoryStoreError(f"{type(error).__name__}: {error}"))
        else:
            self.statistics.written += done
            if done < len(commands):
                self._lose(len(commands) - done, MemoryStoreError("Feedback names a memory that does not exist."))

    def _isolate(self, commands: list[Command], error: MemoryStoreError) -> None:
        if len(commands) <= 1:
            self._lose(len(commands), error)
            return
        # By halving, one bad entry among 2,048 is found in eleven steps.
        middle = len(commands) // 2
        self._store(commands[:middle])
        self._store(commands[middle:])

    def _lose(self, count: int, error: MemoryStoreError) -> None:
        self.statistics.lost += count
        if self.statistics.last_error is None:
            _log.warning("memory: %d entries were not stored: %s", count, error)
        self.statistics.last_error = str(error)
