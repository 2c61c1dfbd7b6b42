"""The Dreamer, which runs passes over memory at intervals and after tasks, with the order of the steps.

It is the slow loop. It maintains memory while no task needs memory. Reference: paper, section 7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport
from artoo.loops.slow.evidence import doubt, forget, transfer
from artoo.loops.slow.passing import Draft, DreamLimits, Pass, TasksRunning
from artoo.loops.slow.rules import bankrupt, consolidate, propose
from artoo.ports.clock import Clock
from artoo.ports.dream import DreamingElsewhere, DreamStore
from artoo.ports.ids import Ids

STEPS: tuple[Callable[[Pass], Awaitable[None]], ...] = (forget, bankrupt, consolidate, doubt, transfer, propose)
# The steps of a brief pass, which ask neither a model nor a user. They ask neither a model nor a user.
WITHOUT_MODEL = (forget, bankrupt, doubt, transfer)
# The name of the mark under which memory stores the end time of the last pass.
_PASSED = "passed"
_TICK = 1.0


@dataclass(slots=True, eq=False)
class Dreamer:
    """Runs a pass every five minutes, and after a settle delay when a task has ended.

    `busy` returns whether tasks are running. `publish` publishes as the Dreamer. `draft` words rules. If it is
    None, no model is configured and no rule is made from experience. A pass that was interrupted by its limits, by
    tasks or by a crash is continued from its stored cursors.
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
        """Start the next pass after the settle delay instead of the interval, because a task has ended."""
        self._nudged = True

    async def run(self) -> None:
        """Run passes until cancelled. A failed pass is reported and repeated at the next interval."""
        while True:
            await self._until_due()
            await self.dream()

    async def dream_if_due(self) -> DreamReport | None:
        """Run one pass if the last one ended longer ago than the interval. Never raises MemoryStoreError."""
        with suppress(MemoryStoreError):
            passed = await self.store.mark(_PASSED)
            if passed is None or (self.clock.now() - datetime.fromisoformat(passed)) >= self._interval:
                return await self.dream()
        return None

    async def dream(self) -> DreamReport:
        """Run one pass now. If another process runs a pass over the same store, the report says so and is not
        published.
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
