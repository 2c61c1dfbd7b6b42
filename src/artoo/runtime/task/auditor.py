"""The Auditor as a part of the runtime: it receives every message, and has no port to publish one.

Its tap is attached before the first message, and its chain begins with that message before any role receives it, so
that a process that dies at once has recorded what it began. The rules are loaded in a thread after that, so that a
process without a task does not load them.
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
    """The Auditor of one process, from the first message on. `run` is its life."""

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
        """Put the first message on record, before it is heard by anybody; the others follow behind the stream."""
        # The writer alone is loaded for it, which takes 7 to 9 ms once a process.
        from artoo.auditor.layout import audit_directory
        from artoo.auditor.trail import Trail, header_record

        # A report may have loaded the Auditor before the first message.
        if self._auditor is not None:
            return
        trail = Trail(audit_directory(self._home))
        trail.write([header_record(envelope)], self._clock.now())
        self._trail = trail

    async def run(self) -> None:
        """Wait for the first message, then audits until the spool is finished and empty."""
        # An error is logged and tasks go on without their Auditor; its chain says that it did not end.
        try:
            await self._spool.wait()
            await self._audit()
        except StreamClosed:
            return
        except Exception:
            # This is the Auditor's boundary: no error of it may reach a task.
            logger.exception("the Auditor has failed; tasks go on unaudited until artoo is started again")
            self._end()
            await self._ignore()
        finally:
            self._end()

    def _end(self) -> None:
        """Let no caller wait from here on."""
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
        """Drop messages that are not audited any more, so that they do not accumulate."""
        with suppress(StreamClosed):
            while True:
                await self._spool.wait()
                self._spool.take(_NOTES_KEPT)

    async def report(self) -> AuditReport:
        """Report what happened since the last report; the next window begins."""
        return await (await self._loaded()).report()

    async def flush(self) -> None:
        """Return when everything that was said before this call is on record; at once when `run` has ended: one
        that was cancelled before it began to audit leaves nothing to wait for.
        """
        if self._spool.accepted and not self._over:
            await (await self._loaded()).flush()

    async def store(self) -> None:
        """Store the statistics of everything that was said before this call, for a reader of the files."""
        if self._spool.accepted and not self._over:
            await (await self._loaded()).store()

    def note_log(self, task: str, file: str, size: int, digest: str) -> None:
        """Record that a task log has grown (tasklog.file.Grown). Thread-safe. From any thread."""
        # A process that was just started may die before the Auditor is loaded, so its log goes on record at once.
        with self._noting:
            if self._auditor is not None:
                self._auditor.note_log(task, file, size, digest)
            elif self._trail is not None:
                from artoo.auditor.trail import log_record

                now = self._clock.now()
                self._trail.write([log_record(task, file, (size, digest), now)], now)

    def note_witness(self, machine: str, number: int, digest: str) -> None:
        """Record where another machine's audit stands. Thread-safe."""
        self._note(lambda auditor: auditor.note_witness(machine, number, digest))

    @property
    def chain(self) -> str:
        """Return the chain of this process; empty before its first message."""
        return self._trail.chain if self._trail is not None else ""

    def note_forgotten(self, tasks: Sequence[str]) -> None:
        """Record that old task logs were removed, as the configuration says."""
        self._note(lambda auditor: auditor.note_forgotten(tasks))

    def _note(self, note: Callable[[Auditor], None]) -> None:
        """Give a note to the Auditor now, or as soon as it is loaded."""
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
    """Audit every message on `bus` while the block runs, into files of the Auditor's own below `home`."""
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
