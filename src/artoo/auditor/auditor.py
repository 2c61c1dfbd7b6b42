"""Run the Auditor (R6) on the whole stream, with batch size, report interval and store interval.

The Auditor observes the messages on the stream, records them, and reports to the operator. It sends nothing to the
agents.

    spool ──► Watch ──► Window, Drift ──► report
        └───► Trail (one hash chain per process) ──► anchors

All of this runs in worker threads and lags behind the stream. Errors of the Auditor do not affect tasks.
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
"""How long messages are collected before they are processed. The Auditor thus works while tasks wait for their
models."""
YIELD_EVERY = 16
"""Number of messages (about 0.3 ms) after which the thread lets another thread run."""
REPORT_EVERY = timedelta(minutes=5)
STORE_SECONDS = 10.0
"""Maximum number of seconds between two writes of the statistics while there are messages. A crash loses at most
the data of this time."""


MOST_WITNESSED = 64
"""Maximum number of anchors of other machines that are kept between two writes of the trail."""


class Auditor:
    """Reads a spool that contains the whole stream. `run` and `keep_statistics` are started in the task group of
    the runtime.

    `recall` returns the earlier messages of a task. Files below `home` are made when the first message arrives.
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
        """Return the chain that this process writes."""
        return self._trail

    def go_on_with(self, trail: Trail, *, on_record: int) -> None:
        """Continue a chain that exists already. This must be called before `run`. `on_record`: number of messages
        that the chain already contains."""
        self._trail, self._on_record = trail, on_record

    async def run(self) -> None:
        """Process messages until the spool is finished and empty, then close the chain."""
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
        """Stop processing, even if `run` has not begun, and let callers of `flush` return."""
        self._ended = True
        self._release()

    async def keep_statistics(self) -> None:
        """Store the statistics while there are messages, and report whenever a window ends. Runs until
        cancelled."""
        while True:
            await self._clock.sleep(STORE_SECONDS)
            if self._begun:
                await asyncio.to_thread(self._store, None)

    async def flush(self) -> None:
        """Return when all messages that were published before this call are recorded."""
        target = self._spool.accepted
        if self._taken >= target or self._ended:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((target, waiter))
        self._spool.hurry()
        await waiter

    async def store(self) -> None:
        """Store the statistics of all messages that were published before this call. The window of the report
        continues."""
        await self.flush()
        if self._begun:
            await asyncio.to_thread(self._store, None)

    async def report(self) -> AuditReport:
        """Return a report on everything since the last report. Begin the next window."""
        await self.flush()
        report = await asyncio.to_thread(self._store, "on-demand")
        return report if report is not None else self._window.report("on-demand", self._clock.now())

    def note_log(self, task_id: str, file: str, size: int, digest: str) -> None:
        """Record that the first `size` bytes of a task log have this sha256. The call is fast and may be made in
        any thread."""
        with self._noting:
            self._task_logs[task_id, file] = size, digest

    def note_forgotten(self, tasks: Sequence[str]) -> None:
        """Record that artoo removed the logs of these tasks because of their age, and not a user."""
        self._forgotten.extend(tasks)

    def note_witness(self, machine: str, number: int, digest: str) -> None:
        """Record the position of another machine's anchors, as stored in the store. The call is fast and may be
        made in any thread."""
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
                    # Lets the event loop run, which otherwise might have to wait 5 ms.
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
            # The chain is anchored at the end of each task. If the records of a task that has ended are truncated,
            # this is noticed.
            self._trail.write(records, now, anchor=ended)
            if not self._begun:
                self._begin(now)

    def _found(self, finding: Finding) -> bytes:
        self._window.add(finding)
        level = logging.WARNING if finding.nature == "violation" else logging.INFO
        logger.log(level, "audit: %s: %s (task %s)", finding.rule, finding.what, finding.task_id or "none")
        return finding_record(finding)

    def _log_records(self, at: datetime) -> list[bytes]:
        """Return records for the task logs that have grown since the last call, one for each file."""
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
        """Load the long-run figures, and remove old chains. This is done after the first record."""
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
        """Close the chain. Idempotent. It waits for a batch that a cancelled `run` has left in a worker thread."""
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
