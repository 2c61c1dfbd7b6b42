"""Watch everything that is said, record it, and report to the operator (R6); the Auditor speaks to no agent.

    spool ──► Watch ──► Window, Drift ──► report
        └───► Trail (one hash chain a process) ──► anchors

All of it runs in worker threads, behind the stream. Nothing that goes wrong here reaches a task.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from artoo.auditor.drift import Drift
from artoo.auditor.layout import TrailLimits, audit_directory
from artoo.auditor.retention import retire
from artoo.auditor.stats import Stats, Trigger
from artoo.auditor.trail import Trail, encoded, finding_record, gap_record, header_record, log_record, report_record
from artoo.auditor.watch import Recall, Watch
from artoo.auditor.window import Window
from artoo.contracts.audit import AuditReport, Finding
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.ports.clock import Clock
from artoo.ports.spool import Gap, Lull, Spool

logger = logging.getLogger(__name__)

BATCH = 2_048
LULL = Lull(first=0.25, quiet=0.01, longest=0.75, enough=BATCH)
"""How long messages gather before they are looked at: the Auditor works while tasks wait for their models."""
YIELD_EVERY = 16
"""Messages, some 0.3 ms, after which the thread lets others have the interpreter."""
REPORT_EVERY = timedelta(minutes=5)
STORE_SECONDS = 10.0
"""Longest time between two stores of the statistics while something happens: what a crash may cost of them."""


MOST_WITNESSED = 64
"""Anchors of other machines between two writes of the trail."""


class Auditor:
    """Consume a spool of the whole stream. `run` and `keep_statistics` belong into the runtime's task group.

    `recall` gives back what was said of a task before. Files appear below `home` with the first message.
    """

    def __init__(
        self,
        home: Path,
        spool: Spool,
        clock: Clock,
        recall: Recall | None = None,
        *,
        limits: TrailLimits | None = None,
        report_every: timedelta = REPORT_EVERY,
    ) -> None:
        self._forgotten_before = 0
        self._directory = audit_directory(home)
        self._spool = spool
        self._clock = clock
        self._limits = limits or TrailLimits()
        self._every = report_every
        self._watch = Watch(recall=recall, drift=Drift())
        self._trail = Trail(self._directory, self._limits)
        self._on_record = 0
        self._stats = Stats(self._directory)
        self._window = Window(clock.now())
        self._task_logs: dict[tuple[str, str], tuple[int, str]] = {}
        self._forgotten: deque[str] = deque()
        self._witnessed: deque[tuple[str, int, str]] = deque(maxlen=MOST_WITNESSED)
        self._noting = threading.Lock()
        self._working = threading.Lock()
        self._taken = 0
        self._begun = False
        self._closed = False
        self._ended = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def trail(self) -> Trail:
        """Return this process's chain."""
        return self._trail

    def go_on_with(self, trail: Trail, *, on_record: int) -> None:
        """Continue a chain, before `run`, that holds so many of the first messages that `run` will take."""
        self._trail, self._on_record = trail, on_record

    async def run(self) -> None:
        """Take everything until the spool is finished and empty; then close the chain."""
        try:
            while True:
                await self._spool.wait(None if self._waiting else LULL)
                while batch := self._spool.take(BATCH):
                    await self._take(batch)
        except StreamClosed:
            logger.debug("the Auditor has seen %d messages", self._taken)
            await asyncio.to_thread(self._close)
        finally:
            self.end()
            self._close()

    def end(self) -> None:
        """End the Auditor: take nothing more, whether or not `run` has begun, and let callers of `flush` return."""
        self._ended = True
        self._release()

    async def keep_statistics(self) -> None:
        """Store the statistics while something happens, and report when a window is over. Until cancelled."""
        while True:
            await self._clock.sleep(STORE_SECONDS)
            if self._begun:
                await asyncio.to_thread(self._store, None)

    async def flush(self) -> None:
        """Return when everything that was published before this call is on record."""
        target = self._spool.accepted
        if self._taken >= target or self._ended:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((target, waiter))
        self._spool.hurry()
        await waiter

    async def store(self) -> None:
        """Store the statistics of everything that was published before this call; the window goes on."""
        await self.flush()
        if self._begun:
            await asyncio.to_thread(self._store, None)

    async def report(self) -> AuditReport:
        """Report what happened since the last report, up to this moment. The next window begins."""
        await self.flush()
        report = await asyncio.to_thread(self._store, "on-demand")
        return report if report is not None else self._window.report("on-demand", self._clock.now())

    def note_log(self, task_id: str, file: str, size: int, digest: str) -> None:
        """Record that the first `size` bytes of a task log have this sha256. From any thread; quick."""
        with self._noting:
            self._task_logs[task_id, file] = size, digest

    def note_forgotten(self, tasks: Sequence[str]) -> None:
        """Record that the logs of these tasks were removed because of their age, and not by a user."""
        self._forgotten.extend(tasks)

    def note_witness(self, machine: str, number: int, digest: str) -> None:
        """Record where another machine's anchors are, as the store has it. From any thread; quick."""
        self._witnessed.append((machine, number, digest))

    # --- on the event loop ----------------------------------------------------------------------------------

    async def _take(self, batch: Sequence[Envelope | Gap]) -> None:
        await asyncio.to_thread(self._record, batch)
        self._taken += sum(item.count if isinstance(item, Gap) else 1 for item in batch)
        self._release()

    def _release(self) -> None:
        still: list[tuple[int, asyncio.Future[None]]] = []
        for target, waiter in self._waiting:
            if target > self._taken and not self._ended:
                still.append((target, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still

    # --- in a worker thread ---------------------------------------------------------------------------------

    def _record(self, batch: Sequence[Envelope | Gap]) -> None:
        with self._working:
            now = self._clock.now()
            records: list[bytes] = []
            ended = False
            for number, item in enumerate(batch):
                if number % YIELD_EVERY == 0:
                    # The event loop may have the interpreter now, and need not wait 5 ms for it.
                    time.sleep(0)
                if isinstance(item, Gap):
                    records.append(gap_record(item, now))
                    self._window.lost(item.count)
                    findings = self._watch.gap(item, now)
                else:
                    if self._on_record:
                        self._on_record -= 1
                    else:
                        records.append(header_record(item))
                    self._window.observe(item)
                    findings = self._watch.observe(item)
                    ended = ended or item.kind == "FinalResult"
                records.extend(map(self._found, findings))
            records.extend(self._log_records(now))
            # Anchored at the end of each task, so that the tail of a finished task cannot be cut unseen.
            self._trail.write(records, now, anchor=ended)
            if not self._begun:
                self._begin(now)

    def _found(self, finding: Finding) -> bytes:
        self._window.add(finding)
        level = logging.WARNING if finding.nature == "violation" else logging.INFO
        logger.log(level, "audit: %s: %s (task %s)", finding.rule, finding.what, finding.task_id or "none")
        return finding_record(finding)

    def _log_records(self, at: datetime) -> list[bytes]:
        """Return the notes of the task logs since the last call, each file once."""
        with self._noting:
            grown, self._task_logs = self._task_logs, {}
        taken = [log_record(task, file, point, at) for (task, file), point in grown.items()]
        while self._forgotten:
            taken.append(encoded({"type": "log_forgotten", "at": at, "task": self._forgotten.popleft()}))
        while self._witnessed:
            machine, number, digest = self._witnessed.popleft()
            seen = {"type": "witness", "at": at, "machine": machine, "number": number, "hash": digest}
            taken.append(encoded(seen))
        return taken

    def _begin(self, at: datetime) -> None:
        """Begin after the first record: load the long run, and remove old chains."""
        self._begun = True
        try:
            self._watch.drift.load(self._stats.bands(at))
            self._stats.note_anchors(self._trail.anchors, at)
            retire(
                self._directory,
                self._limits,
                self._trail.chain,
                at,
                lambda chain, head: self._trail.anchor_other(chain, "retired", head, at),
            )
        except OSError as error:
            self._not_kept(error)

    def _not_kept(self, error: OSError) -> None:
        logger.warning("the Auditor cannot keep its statistics in %s: %s", self._directory, error)
        self._trail.note_fault(error)

    def _store(self, report: Trigger | None) -> AuditReport | None:
        with self._working:
            now = self._clock.now()
            self._trail.write(self._log_records(now), now)
            window, self._window = self._window, Window(now)
            forgotten = self._watch.forgotten + self._watch.withheld
            if forgotten > self._forgotten_before:
                window.counts["forgotten"] += forgotten - self._forgotten_before
                self._forgotten_before = forgotten
            if report is None and window.empty and not self._watch.drift.blocks:
                return None
            try:
                stored = self._stats.store(
                    window, self._watch.drift, self._trail.anchors, now, report=report, every=self._every
                )
            except OSError as error:
                self._not_kept(error)
                window.merge(self._window)
                self._window = window
                return None if report is None else window.report(report, now)
            if stored is not None:
                self._trail.write([report_record(stored)], now)
            return stored

    def _close(self) -> None:
        """End the chain. Idempotent; waits for a batch that a cancelled `run` left with its worker thread."""
        with self._working:
            if not self._begun or self._closed:
                return
            self._closed = True
        self._store(None)
        with self._working:
            now = self._clock.now()
            self._trail.close(now)
            with suppress(OSError):
                self._stats.note_anchors(self._trail.anchors, now)
