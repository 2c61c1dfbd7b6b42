"""The Dreamer: the slow loop. Forgets, doubts, generalises and guesses while nobody is waiting (paper, 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport
from artoo.loops.slow.bankrupt import bankrupt
from artoo.loops.slow.consolidate import consolidate
from artoo.loops.slow.doubt import doubt
from artoo.loops.slow.forget import forget
from artoo.loops.slow.passing import Draft, DreamLimits, Pass, TasksRunning
from artoo.loops.slow.propose import propose
from artoo.loops.slow.transfer import transfer
from artoo.ports.clock import Clock
from artoo.ports.dream import DreamingElsewhere, DreamStore
from artoo.ports.ids import Ids

STEPS: tuple[Callable[[Pass], Awaitable[None]], ...] = (forget, bankrupt, consolidate, doubt, transfer, propose)
WITHOUT_MODEL = (forget, bankrupt, doubt, transfer)
"""The steps of a brief pass: nothing is asked of a model or of a person."""
_PASSED = "passed"
"""The mark that holds when the last pass ended."""
_TICK = 1.0


@dataclass(slots=True, eq=False)
class Dreamer:
    """Runs passes: every five minutes, and a settle delay after a task ended.

    `busy` says whether tasks are running; `publish` speaks on the stream as the Dreamer; `draft` words rules
    (None: no model is configured, nothing is consolidated). A pass that was cut short, by its bounds, by
    tasks or by a crash, goes on from its cursors.
    """

    store: DreamStore
    clock: Clock
    ids: Ids
    publish: Callable[[Contract], object]
    busy: Callable[[], bool]
    draft: Draft | None = None
    limits: DreamLimits = field(default_factory=DreamLimits)
    steps: tuple[Callable[[Pass], Awaitable[None]], ...] = STEPS
    _nudged: bool = field(default=False, init=False)

    def nudge(self) -> None:
        """A task has ended: dream after the settle delay instead of after the interval."""
        self._nudged = True

    async def run(self) -> None:
        """Dreams until cancelled. A pass that fails is reported and tried again at the next interval."""
        while True:
            await self._until_due()
            await self.dream()

    async def dream_if_due(self) -> DreamReport | None:
        """One pass if the last one ended longer ago than the interval. Never raises MemoryStoreError."""
        with suppress(MemoryStoreError):
            passed = await self.store.mark(_PASSED)
            if passed is None or (self.clock.now() - datetime.fromisoformat(passed)) >= self._interval:
                return await self.dream()
        return None

    async def dream(self) -> DreamReport:
        """One pass, now. Never raises MemoryStoreError: the report says what went wrong.

        While somebody else dreams over the same store it says so, to its caller and not on the stream.
        """
        dream_id, started_at = self.ids.new(), self.clock.now()
        try:
            async with self.store.turn():
                report = await self._pass(dream_id, started_at)
        except DreamingElsewhere as other:
            return DreamReport(dream_id=dream_id, started_at=started_at, finished=False, error=str(other))
        except MemoryStoreError as failure:
            report = DreamReport(dream_id=dream_id, started_at=started_at, finished=False, error=str(failure))
        self.publish(report)
        return report

    async def _pass(self, dream_id: str, started_at: datetime) -> DreamReport:
        started = self.clock.monotonic()
        work = Pass(self.store, self.clock, self.ids, self.limits, self.busy, self.publish, self.draft)
        error: str | None = None
        try:
            for step in self.steps:
                work.until = self.clock.monotonic() + self.limits.seconds / len(self.steps)
                await step(work)
        except TasksRunning:
            work.findings.finished = False
        except MemoryStoreError as failure:
            error = str(failure)
        duration_ms = round((self.clock.monotonic() - started) * 1_000)
        report = work.findings.report(dream_id, started_at, duration_ms, error)
        return report if error is not None else await self._kept(report)

    async def _kept(self, report: DreamReport) -> DreamReport:
        try:
            await self.store.keep_report(report)
            await self.store.set_mark(_PASSED, self.clock.now().isoformat())
        except MemoryStoreError as failure:
            return report.model_copy(update={"error": str(failure), "finished": False})
        return report

    @property
    def _interval(self) -> timedelta:
        return timedelta(seconds=self.limits.interval)

    async def _until_due(self) -> None:
        due = self.clock.monotonic() + self.limits.interval
        while self.clock.monotonic() < due:
            if self._nudged:
                self._nudged = False
                due = min(due, self.clock.monotonic() + self.limits.settle)
            await self.clock.sleep(min(_TICK, self.limits.settle))
