"""Write the stream to task logs in batches, with the limit on open files.

Reference: SPEC section 10.

The writer consumes a spool in the background and writes in batches. Small batches are written to the page cache
on the event loop's thread; large batches, task endings and batches for a slow disk are written by a worker
thread. No publisher waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import NotLogged, StreamClosed
from artoo.ports.spool import Gap, Lull, Spool
from artoo.redaction import Redactor
from artoo.tasklog.file import LAST_KIND, Grown, TaskFile
from artoo.tasklog.layout import LogLimits, task_directory

logger = logging.getLogger(__name__)

BATCH = 512
# Maximum number of messages in a batch that is written on the event loop's thread. Writing them to the page cache
# takes 100 to 250 µs. A worker thread would save nothing, because the write needs the GIL anyway. It would cost 300
# to 600 µs more.
FEW = 256
# Messages are written when a burst of messages is over, unless a caller waits for the write. Roles publish messages
# for a millisecond or two between two model calls. The next model call is sent first, and the log is written while
# the model works. This saves 2 ms of the 10 ms that a chain of six calls costs. No message waits longer than
# `longest`.
LULL = Lull(first=0.002, quiet=0.001, longest=0.05, enough=BATCH)
# Number of messages in one write in a worker thread. After each write the thread releases the GIL to the event
# loop. Otherwise the event loop would wait until Python forces the thread to release it, which happens after 5 ms.
TURN = 16
# Number of messages in one write on the event loop's own thread.
TURN_HERE = 64
SLOW_SECONDS = 0.05
# If a write on the event loop's thread took longer than SLOW_SECONDS, a worker thread writes for this number of
# seconds afterwards.
PATIENCE_SECONDS = 10.0
MOST_OPEN_FILES = 64


class TaskLog:
    """A writer that appends every envelope of a task to that task's log below `home`.

    Start the consumer `run` in a task group. To end it, call `flush` and finish the spool. Messages without a task
    (an empty task id) are not logged. A log file is closed when its task ends, or when more than `MOST_OPEN_FILES`
    tasks write at the same time. It is opened again if another message comes."""

    def __init__(
        self,
        home: Path,
        spool: Spool,
        *,
        redactor: Redactor | None = None,
        limits: LogLimits | None = None,
        grown: Grown | None = None,
    ) -> None:
        """Prepare the log without opening a file. `grown` is called after every write with the state of the file.
        The Auditor uses it."""
        self._grown = grown
        self._home = home
        self._spool = spool
        self._redactor = redactor or Redactor()
        self._limits = limits or LogLimits()
        self._files: OrderedDict[str, TaskFile] = OrderedDict()
        self._left: deque[tuple[int, str]] = deque()
        self._writing = threading.Lock()
        self._written = 0
        self._missing = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._ended = False
        self._slow_until = 0.0

    @property
    def missing(self) -> int:
        """Return the number of messages so far that could not be written to any log. Each log also records its own
        number."""
        return self._missing

    def directory(self, task_id: str) -> Path:
        """Return the directory of a task's log, which need not exist yet."""
        return task_directory(self._home, task_id)

    async def run(self) -> None:
        """Write until the spool is finished and empty, then close all files."""
        try:
            while True:
                await self._spool.wait(None if self._waiting else LULL)
                batch = self._spool.take(BATCH)
                # The end of a task is followed by an fsync, which would block the event loop for too long.
                if self._may_write_here(batch):
                    self._write_here(batch)
                else:
                    await self._write(batch)
        except StreamClosed:
            logger.debug("the task log has written %d messages", self._written)
        finally:
            self._ended = True
            self._release()
            self._close_all()

    async def flush(self) -> None:
        """Wait until each message that was published before this call is in its log, or is counted as missing.

        Written messages have been handed to the operating system, so they survive a crash of this process. All
        callers that wait in the same turn of the event loop share one write. This method returns at once if `run`
        has ended."""
        target = self._spool.accepted
        if self._written >= target or self._ended:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((target, waiter))
        self._spool.hurry()
        await waiter

    async def keep(self, task_id: str) -> None:
        """Flush the log before an operation in a task takes effect. Raises NotLogged if the log could not be
        written.

        Messages that were lost earlier do not matter if the log records them as a gap, because the log is writable
        again.
        """
        await self.flush()
        if self._written < self._spool.accepted and self._ended:
            raise NotLogged(
                f"the log ended before task {task_id} did; nothing takes effect that is not logged first"
            )
        file = self._files.get(task_id)
        if file is not None and file.unnoted:
            raise NotLogged(
                f"the last {file.unnoted} messages of task {task_id} are not in {self.directory(task_id)}: "
                f"{file.reason}; nothing takes effect that is not logged first"
            )

    def let_go(self, task_id: str) -> None:
        """Close the file of a task that does not run here any more, as soon as all its messages are written.

        This is for cancelled tasks. The file of a task that ended is closed after the task's last message."""
        self._left.append((self._spool.accepted, task_id))
        self._close_left()

    def _may_write_here(self, batch: Sequence[Envelope | Gap]) -> bool:
        few = len(batch) <= FEW and asyncio.get_running_loop().time() >= self._slow_until
        return few and LAST_KIND not in [item.kind for item in batch if isinstance(item, Envelope)]

    def _write_here(self, batch: Sequence[Envelope | Gap]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._append(batch, TURN_HERE)
        if loop.time() - began > SLOW_SECONDS:
            self._slow_until = loop.time() + PATIENCE_SECONDS
        self._count(batch)

    async def _write(self, batch: Sequence[Envelope | Gap]) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._append, batch))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # Wait for the thread, because nothing else can finish and count its batch.
            await asyncio.wait((writing,))
            raise
        finally:
            self._count(batch)

    def _count(self, batch: Sequence[Envelope | Gap]) -> None:
        self._written += len(batch) + sum(item.count - 1 for item in batch if isinstance(item, Gap))
        self._close_left()
        self._release()

    def _release(self) -> None:
        still: list[tuple[int, asyncio.Future[None]]] = []
        for target, waiter in self._waiting:
            if target > self._written and not self._ended:
                still.append((target, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still

    def _append(self, batch: Sequence[Envelope | Gap], turn: int = TURN) -> None:
        with self._writing:
            run: defaultdict[str, list[Envelope]] = defaultdict(list)
            for item in batch:
                if isinstance(item, Gap):
                    self._append_run(run, turn)
                    run.clear()
                    self._note_gap(item)
                elif item.task_id:
                    run[item.task_id].append(item)
            self._append_run(run, turn)

    def _append_run(self, run: dict[str, list[Envelope]], turn: int) -> None:
        for task_id, envelopes in run.items():
            file = self._file(task_id)
            before = file.lost
            for start in range(0, len(envelopes), turn):
                file.append(envelopes[start : start + turn])
            self._missing += file.lost - before
            if file.ended:
                file.sync()
                file.close()
                del self._files[task_id]

    def _note_gap(self, gap: Gap) -> None:
        self._missing += gap.count
        for task_id, count in gap.by_task:
            if task_id:
                self._file(task_id).note_lost(count, gap.reason)

    def _file(self, task_id: str) -> TaskFile:
        file = self._files.get(task_id)
        if file is None:
            file = TaskFile(self.directory(task_id), task_id, self._limits, self._redactor, self._grown)
            self._files[task_id] = file
            if len(self._files) > MOST_OPEN_FILES:
                self._close_oldest()
        self._files.move_to_end(task_id)
        return file

    def _close_oldest(self) -> None:
        """Close the file whose last write is the oldest."""
        for task_id, file in self._files.items():
            if self._closed(task_id, file):
                return

    def _close_left(self) -> None:
        """Close the files of tasks that do not run here any more and whose messages are all written."""
        if not self._writing.acquire(blocking=False):
            return  # A batch is being written, so this method is called again when the batch has been counted.
        try:
            while self._left and self._left[0][0] <= self._written:
                _, task_id = self._left.popleft()
                file = self._files.get(task_id)
                if file is not None:
                    self._closed(task_id, file)
        finally:
            self._writing.release()

    def _closed(self, task_id: str, file: TaskFile) -> bool:
        """Close a file and forget it. If the log does not record all losses yet, keep the file and return False."""
        file.close()
        if file.unnoted:
            return False
        del self._files[task_id]
        return True

    def _close_all(self) -> None:
        # The lock waits for the worker thread of a cancelled `run`, which may still be writing a batch.
        with self._writing:
            for file in self._files.values():
                file.close()
            self._files.clear()
