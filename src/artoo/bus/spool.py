"""Queue messages for a slow consumer in memory, then in a file, then count lost ones, with both limits.

The count of missing messages is exact.

Reference: SPEC section 1.

Messages are kept in memory while there is room. If there is no room, they are written to the file until the
consumer has caught up. A queue of runs (sequences of messages at the same place) preserves their order without
merging. If writing to the file fails too, the messages are counted in a gap. A message costs the publisher one
append. If the consumer is far behind, it costs one encoding and one write to the page cache.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

from artoo.contracts.codec import decode, encode_line
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MessageUnreadable, ProtocolError, StreamClosed
from artoo.ports.spool import Gap, Lull

logger = logging.getLogger(__name__)

READ_SIZE = 256 * 1024
_TASKS_COUNTED = 1_000


class SpoolFile:
    """A file for the messages that do not fit into memory. It is a queue of lines, and it is truncated when the
    queue is empty.

    The file is created in `directory` with mode 0600 at the first write and removed by `close`. `limit` is its
    maximum size in bytes."""

    def __init__(self, directory: Path, name: str, limit: int) -> None:
        self._directory = directory
        self._name = name
        self._limit = limit
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._written = 0
        self._read = 0
        self._rest = b""

    @property
    def path(self) -> Path | None:
        """Return the path of the file while it exists."""
        return self._path

    def append(self, line: bytes) -> None:
        """Write one whole line with its line end. If this fails, raise OSError and leave the file unchanged."""
        if self._written + len(line) > self._limit:
            raise OSError(f"the spool file has reached its limit of {self._limit} bytes")
        descriptor = self._open()
        done = 0
        while done < len(line):
            done += os.pwrite(descriptor, line[done:], self._written + done)
        self._written += len(line)

    def read(self, limit: int) -> list[bytes]:
        """Return up to `limit` lines from the front, without their line ends."""
        if self._descriptor is None:
            return []
        while self._rest.count(b"\n") < limit and self._read < self._written:
            wanted = min(READ_SIZE, self._written - self._read)
            chunk = os.pread(self._descriptor, wanted, self._read)
            if not chunk:
                raise OSError(f"the spool file {self._path} became shorter than what was written to it")
            self._read += len(chunk)
            self._rest += chunk
        *lines, rest = self._rest.split(b"\n", limit)
        self._rest = rest
        return lines

    def empty(self) -> None:
        """Truncate the file to free its space on disk. Call this method only after everything was read."""
        if self._descriptor is not None and self._written:
            os.ftruncate(self._descriptor, 0)
        self._written = self._read = 0
        self._rest = b""

    def close(self) -> None:
        """Close and remove the file. A second call has no effect."""
        if self._descriptor is not None and self._path is not None:
            os.close(self._descriptor)
            self._path.unlink(missing_ok=True)
        self._descriptor = self._path = None
        self._written = self._read = 0
        self._rest = b""

    def _open(self) -> int:
        if self._descriptor is None:
            # This module is imported here because it is rarely needed and slow to import (it imports shutil).
            import tempfile

            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._descriptor, path = tempfile.mkstemp(
                prefix=f"spool-{self._name}-{os.getpid()}-", suffix=".jsonl", dir=self._directory
            )
            self._path = Path(path)
        return self._descriptor


class _FileRun:
    """A sequence of consecutive messages that are in the file."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _GapRun:
    """A sequence of consecutive messages that are lost."""

    __slots__ = ("by_task", "reason")

    def __init__(self, reason: str) -> None:
        self.by_task: Counter[str] = Counter()
        self.reason = reason

    def add(self, task_id: str, count: int = 1) -> None:
        known = task_id in self.by_task or len(self.by_task) < _TASKS_COUNTED
        self.by_task[task_id if known else ""] += count

    def gap(self) -> Gap:
        return Gap(self.by_task.total(), tuple(self.by_task.items()), self.reason)


class SpoolingTap:
    """A tap of a bus (`bus.attach(tap)`) that has one consumer (it implements ports.spool.Spool).

    `memory_limit` is a number of messages, and `disk_limit` is a number of bytes. The file is only created in
    `sink_dir` when it is needed. Messages of the kinds in `without` are ignored. Use the tap on the event loop's
    thread. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        sink_dir: Path,
        memory_limit: int = 16_384,
        disk_limit: int = 256 * 1024 * 1024,
        *,
        name: str = "tap",
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self._without = without
        self._memory_limit = memory_limit
        self._memory: deque[Envelope] = deque()
        self._file = SpoolFile(sink_dir, name, disk_limit)
        self._overflow: deque[_FileRun | _GapRun] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._lull: Lull | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0
        self._finished = False
        self._accepted = 0
        self._spilled = 0
        self._lost = 0

    @property
    def accepted(self) -> int:
        """Return the number of messages received so far, including lost ones."""
        return self._accepted

    @property
    def spilled(self) -> int:
        """Return the number of messages that went through the file."""
        return self._spilled

    @property
    def lost(self) -> int:
        """Return the number of messages that are in gaps."""
        return self._lost

    @property
    def file(self) -> Path | None:
        """Return the spool file while it exists."""
        return self._file.path

    def __call__(self, envelope: Envelope) -> None:
        """Store one message without waiting for the consumer. Raises ProtocolError only after `finish`."""
        if self._finished:
            raise ProtocolError(f"the spool of {self.name} is finished; detach it from the bus before that")
        if envelope.kind in self._without:
            return
        self._accepted += 1
        # Once a message is in the file, all later messages are written there until the consumer has caught up. This
        # preserves their order without a merge.
        if not self._overflow and len(self._memory) < self._memory_limit:
            self._memory.append(envelope)
        else:
            self._spill(envelope)
        if self._waiter is not None and self._timer is None:
            self._stir(self._waiter)

    async def receive_batch(self, limit: int = 512) -> list[Envelope | Gap]:
        """Wait for items, and return at least one and at most `limit` of them, in order. Raises StreamClosed if the
        tap is finished and empty."""
        await self.wait()
        return self.take(limit)

    def take(self, limit: int) -> list[Envelope | Gap]:
        """Return the items that are present now, in order and at most `limit` of them. Return an empty list if
        there are none."""
        memory = self._memory
        if memory and len(memory) <= limit:
            taken: list[Envelope | Gap] = list(memory)
            memory.clear()
            return taken
        if memory:
            return [memory.popleft() for _ in range(limit)]
        return self._receive_overflow(limit) if self._overflow else []

    async def wait(self, lull: Lull | None = None) -> None:
        """Implement `Spool`."""
        while not self._memory and not self._overflow:
            self._file.empty()
            await self._arrival(lull)
            lull = None
        if lull is not None and not self._finished:
            await self._arrival(lull)

    def hurry(self) -> None:
        """Implement `Spool`."""
        if self._timer is not None:
            self._wake()

    async def __aiter__(self) -> AsyncIterator[Envelope | Gap]:
        while True:
            try:
                batch = await self.receive_batch()
            except StreamClosed:
                return
            for item in batch:
                yield item

    def finish(self) -> None:
        """Close the tap for new messages. The consumer still gets the remaining ones. Detach the tap first."""
        self._finished = True
        self._wake()

    def close(self) -> None:
        """Close the tap, discard the remaining messages and remove the file. A second call has no effect."""
        unread = len(self._memory) + sum(run.count for run in self._overflow if isinstance(run, _FileRun))
        if unread:
            logger.warning("the spool of %s was closed with %d messages that nobody read", self.name, unread)
        self.forget()
        self.finish()

    def forget(self) -> None:
        """Drop the remaining messages and remove the file, because the reader has left on purpose."""
        self._memory.clear()
        self._overflow.clear()
        self._file.close()

    def __enter__(self) -> SpoolingTap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spill(self, envelope: Envelope) -> None:
        try:
            self._file.append(encode_line(envelope))
        except (OSError, TypeError, ValueError, RecursionError) as error:
            self._lose(envelope, f"{type(error).__name__}: {error}")
            return
        self._spilled += 1
        run = self._overflow[-1] if self._overflow else None
        if not isinstance(run, _FileRun):
            run = _FileRun()
            self._overflow.append(run)
        run.count += 1

    def _lose(self, envelope: Envelope, reason: str) -> None:
        self._lost += 1
        run = self._overflow[-1] if self._overflow else None
        if not isinstance(run, _GapRun):
            logger.error("the spool of %s loses messages, memory and disk are full (%s)", self.name, reason)
            run = _GapRun(reason)
            self._overflow.append(run)
        run.add(envelope.task_id)

    def _receive_overflow(self, limit: int) -> list[Envelope | Gap]:
        run = self._overflow[0]
        if isinstance(run, _FileRun):
            # The file is read on the event loop's thread, because the lines are still in the page cache. If a
            # worker thread read them, a cancelled consumer could lose the messages that were read for it.
            try:
                lines = self._file.read(min(limit, run.count))
            except OSError as error:
                self._give_up_file(f"{type(error).__name__}: {error}")
                return self._receive_overflow(limit)
            run.count -= len(lines)
            if not run.count:
                self._overflow.popleft()
            return [self._decoded(line) for line in lines]
        self._overflow.popleft()
        return [run.gap()]

    def _decoded(self, line: bytes) -> Envelope | Gap:
        try:
            return decode(line)
        except MessageUnreadable as error:
            self._lost += 1
            return Gap(1, (("", 1),), f"the spool file is damaged: {error}")

    def _give_up_file(self, reason: str) -> None:
        logger.error("the spool file %s of %s cannot be read (%s)", self._file.path, self.name, reason)
        for place, run in enumerate(self._overflow):
            if isinstance(run, _FileRun):
                self._lost += run.count
                self._overflow[place] = lost = _GapRun(reason)
                lost.add("", run.count)
        self._file.close()

    async def _arrival(self, lull: Lull | None) -> None:
        if self._finished:
            raise StreamClosed(f"the spool of {self.name} is finished and empty")
        if self._waiter is not None:
            raise ProtocolError(f"the spool of {self.name} already has a consumer waiting")
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._lull = lull
        if self._memory or self._overflow:
            self._stir(waiter)
        try:
            await waiter
        finally:
            if self._waiter is waiter:
                self._let_go()

    def _stir(self, waiter: asyncio.Future[None]) -> None:
        """Wake the consumer for a first message. If the consumer waits with a Lull, start to wait for the end of
        the burst instead."""
        if self._lull is None:
            self._wake()
        else:
            loop = waiter.get_loop()
            self._latest = loop.time() + self._lull.longest
            self._look_after(loop, self._lull.first)

    def _look_after(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._timer = loop.call_later(seconds, self._look, loop, self._accepted)

    def _look(self, loop: asyncio.AbstractEventLoop, heard: int) -> None:
        """Wake the consumer. If more messages have come, continue to wait instead. This is not a coroutine, because
        it runs very often."""
        lull = self._lull
        over = heard == self._accepted or self._overflow or loop.time() >= self._latest
        if lull is None or over or len(self._memory) >= lull.enough:
            self._wake()
        else:
            self._look_after(loop, lull.quiet)

    def _wake(self) -> None:
        waiter = self._let_go()
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _let_go(self) -> asyncio.Future[None] | None:
        waiter, self._waiter = self._waiter, None
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return waiter
