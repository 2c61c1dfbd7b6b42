"""Attach the Auditor to the bus of a process before the first message, and run it.

Its tap is attached to the bus before the first message is published. That message is written to the audit chain
before any role receives it. Even if the process dies at once, it has recorded what it began. The rules are loaded
in a thread after that. A process without a task never loads them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.bus.spool import SpoolingTap
from artoo.contracts.errors import StreamClosed
from artoo.contracts.routes import TRANSIENT
from artoo.ports.clock import Clock

if TYPE_CHECKING:
    from artoo.auditor.auditor import Auditor
    from artoo.auditor.trail import Trail
    from artoo.contracts.audit import AuditReport
    from artoo.contracts.envelope import Envelope

logger = logging.getLogger(__name__)

_NOTES_KEPT = 10_000


class Auditing:
    """The Auditor of one process, which begins with the first message. `run` is its main loop."""

    def __init__(self, home: Path, spool: SpoolingTap, clock: Clock) -> None:
        self._home = home
        self._spool = spool
        self._clock = clock
        self._auditor: Auditor | None = None
        self._loading = asyncio.Lock()
        self._noting = threading.Lock()
        self._trail: Trail | None = None
        self._early: list[Callable[[Auditor], None]] = []
        self._over = False

    def begin(self, envelope: Envelope) -> None:
        """Record the first message before any role receives it. All later messages are recorded asynchronously."""
        # Only the writer is imported here, which takes 7 to 9 ms once in a process.
        from artoo.auditor.layout import audit_directory
        from artoo.auditor.trail import Trail, header_record

        # A report may have loaded the Auditor even before the first message.
        if self._auditor is not None:
            return
        trail = Trail(audit_directory(self._home))
        trail.write([header_record(envelope)], self._clock.now())
        self._trail = trail

    async def run(self) -> None:
        """Wait for the first message. Then audit until the spool is finished and empty."""
        # Errors are logged, and the tasks continue without the Auditor. Its chain then shows that it did not end
        # regularly.
        try:
            await self._spool.wait()
            await self._audit()
        except StreamClosed:
            return
        except Exception:
            # No error of the Auditor may reach a task, so every exception is caught here.
            logger.exception("the Auditor has failed; tasks go on unaudited until artoo is started again")
            self._end()
            await self._ignore()
        finally:
            self._end()

    def _end(self) -> None:
        """Release all callers that wait for the Auditor, and all that will wait later."""
        self._over = True
        if self._auditor is not None:
            self._auditor.end()

    async def _audit(self) -> None:
        auditor = await self._loaded()
        async with asyncio.TaskGroup() as group:
            statistics = group.create_task(auditor.keep_statistics())
            await auditor.run()
            statistics.cancel()

    async def _ignore(self) -> None:
        """Drop messages that are no longer audited, so that they do not accumulate."""
        with suppress(StreamClosed):
            while True:
                await self._spool.wait()
                self._spool.take(_NOTES_KEPT)

    async def report(self) -> AuditReport:
        """Return a report of the events since the last report. Begin the next window."""
        return await (await self._loaded()).report()

    async def flush(self) -> None:
        """Return when every message that was published before this call is recorded. If `run` has ended, return at
        once. A `run` that was cancelled before it began to audit leaves nothing to wait for.
        """
        if self._spool.accepted and not self._over:
            await (await self._loaded()).flush()

    async def store(self) -> None:
        """Store the statistics of all messages that were published before this call, for programs that read the
        files."""
        if self._spool.accepted and not self._over:
            await (await self._loaded()).store()

    def note_log(self, task: str, file: str, size: int, digest: str) -> None:
        """Record that a task log has grown (`tasklog.file.Grown`). This may be called in any thread."""
        # The process may die before the Auditor is loaded, so the size of the log is recorded at once.
        with self._noting:
            if self._auditor is not None:
                self._auditor.note_log(task, file, size, digest)
            elif self._trail is not None:
                from artoo.auditor.trail import log_record

                now = self._clock.now()
                self._trail.write([log_record(task, file, (size, digest), now)], now)

    def note_witness(self, machine: str, number: int, digest: str) -> None:
        """Record the current position of another machine's audit chain. This may be called in any thread."""
        self._note(lambda auditor: auditor.note_witness(machine, number, digest))

    @property
    def chain(self) -> str:
        """Return the path of this process's chain. It is empty before the first message."""
        return self._trail.chain if self._trail is not None else ""

    def note_forgotten(self, tasks: Sequence[str]) -> None:
        """Record that old task logs were deleted according to the configuration."""
        self._note(lambda auditor: auditor.note_forgotten(tasks))

    def _note(self, note: Callable[[Auditor], None]) -> None:
        """Pass a note to the Auditor, now or as soon as it is loaded."""
        with self._noting:
            if self._auditor is not None:
                note(self._auditor)
            else:
                self._early.append(note)

    async def _loaded(self) -> Auditor:
        async with self._loading:
            if self._auditor is None:
                auditor = await asyncio.to_thread(self._load)
                with self._noting:
                    self._auditor = auditor
                    if self._trail is not None:
                        auditor.go_on_with(self._trail, on_record=1)
                    for note in self._early:
                        note(auditor)
                if self._over:
                    auditor.end()
            return self._auditor

    def _load(self) -> Auditor:
        from artoo.auditor.auditor import Auditor

        return Auditor(self._home, self._spool, self._clock, self._messages)

    def _messages(self, task_id: str) -> Iterable[Envelope]:
        from artoo.tasklog.layout import task_directory
        from artoo.tasklog.reader import TaskLogReader

        return TaskLogReader(task_directory(self._home, task_id)).envelopes()


@asynccontextmanager
async def audited(bus: InProcessBus, home: Path, clock: Clock) -> AsyncGenerator[Auditing]:
    """Audit every message on `bus` while the block runs. The audit files are stored below `home`."""
    with SpoolingTap(home / "spool", name="audit", without=TRANSIENT) as spool:
        auditing = Auditing(home, spool, clock)

        def first(envelope: Envelope) -> None:
            begun()
            auditing.begin(envelope)

        begun, detach = bus.attach(first), bus.attach(spool)
        async with asyncio.TaskGroup() as group:
            group.create_task(auditing.run())
            try:
                yield auditing
            finally:
                begun()
                detach()
                await auditing.flush()
                spool.finish()
