"""The task log's writing side: everything on the stream, one file a task (SPEC section 10).

It consumes a spool in the background and writes in batches from a worker thread, so that neither the
publishers nor the event loop wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.ports.spool import Gap, Spool
from artoo.tasklog.file import LAST_KIND, TaskFile
from artoo.tasklog.layout import LogLimits, task_directory
from artoo.tasklog.redact import Redactor

logger = logging.getLogger(__name__)

BATCH = 512
PAUSE_SECONDS = 0.05
"""Least time between two writes, unless somebody waits for them: a burst becomes a few large writes that do not
compete with it for the interpreter."""
MOST_OPEN_FILES = 64


class TaskLog:
    """Writes every envelope that has a task into that task's log below `home`.

    `run` is the consumer: start it in a task group; to end it, `flush` and finish the spool. Messages that
    belong to no task (an empty task id) are not kept here. Log files are closed when their task ends or
    when more than `MOST_OPEN_FILES` tasks write at once, and opened again when something still comes.
    """

    def __init__(
        self, home: Path, spool: Spool, *, redactor: Redactor | None = None, limits: LogLimits | None = None
    ) -> None:
        self._home = home
        self._spool = spool
        self._redactor = redactor or Redactor()
        self._limits = limits or LogLimits()
        self._files: OrderedDict[str, TaskFile] = OrderedDict()
        self._writing = threading.Lock()
        self._written = 0
        self._missing = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._ended = False
        self._hurry = asyncio.Event()

    @property
    def missing(self) -> int:
        """Messages that could not be kept in any log so far. Each log says how many of its own."""
        return self._missing

    def directory(self, task_id: str) -> Path:
        """Where the log of a task is, or will be."""
        return task_directory(self._home, task_id)

    async def run(self) -> None:
        """Writes until the spool is finished and empty, then closes all files."""
        try:
            while True:
                batch = await self._spool.receive_batch(BATCH)
                await self._write(batch)
                if len(batch) < BATCH and not any(is_last(item) for item in batch):
                    await self._pause()
        except StreamClosed:
            logger.debug("the task log has written %d messages", self._written)
        finally:
            self._ended = True
            self._release()
            self._close_all()

    async def flush(self) -> None:
        """Returns when everything that was published before this call is in its log or counted as missing.

        What is in its log has been handed to the operating system: it survives this process, however it dies.
        Returns at once when `run` has ended.
        """
        target = self._spool.accepted
        if self._written >= target or self._ended:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((target, waiter))
        self._hurry.set()
        await waiter

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_SECONDS):
                await self._hurry.wait()

    async def _write(self, batch: Sequence[Envelope | Gap]) -> None:
        await asyncio.to_thread(self._append, batch)
        self._written += sum(item.count if isinstance(item, Gap) else 1 for item in batch)
        self._release()

    def _release(self) -> None:
        still: list[tuple[int, asyncio.Future[None]]] = []
        for target, waiter in self._waiting:
            if target > self._written and not self._ended:
                still.append((target, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still
        if not still:
            self._hurry.clear()

    def _append(self, batch: Sequence[Envelope | Gap]) -> None:
        with self._writing:
            run: defaultdict[str, list[Envelope]] = defaultdict(list)
            for item in batch:
                if isinstance(item, Gap):
                    self._append_run(run)
                    run.clear()
                    self._note_gap(item)
                elif item.task_id:
                    run[item.task_id].append(item)
            self._append_run(run)

    def _append_run(self, run: dict[str, list[Envelope]]) -> None:
        for task_id, envelopes in run.items():
            file = self._file(task_id)
            before = file.lost
            file.append(envelopes)
            self._missing += file.lost - before
            if any(is_last(envelope) for envelope in envelopes):
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
            file = self._files[task_id] = TaskFile(self.directory(task_id), task_id, self._limits, self._redactor)
            if len(self._files) > MOST_OPEN_FILES:
                self._files.popitem(last=False)[1].close()
        self._files.move_to_end(task_id)
        return file

    def _close_all(self) -> None:
        # Waits for a batch that a cancelled `run` left with its worker thread.
        with self._writing:
            for file in self._files.values():
                file.close()
            self._files.clear()


def is_last(item: Envelope | Gap) -> bool:
    """True for the message that ends a task."""
    return isinstance(item, Envelope) and item.kind == LAST_KIND
