"""The limits and pace of a Dreamer pass; its report is worded in `cli/views/memory_view.py`.

All steps of a pass share these limits.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import TypeVar

from artoo.contracts.base import Contract
from artoo.contracts.memory import DreamReport, Megram, MemoryChange, MemoryWritten, Origin, SOPDraft
from artoo.loops.lesson import Lesson
from artoo.ports.clock import Clock
from artoo.ports.dream import Cluster, DreamStore, Slice
from artoo.ports.ids import Ids

T = TypeVar("T")

# A function that uses a language model to word a rule for a cluster. It returns None if the model has no useful
# rule.
Draft = Callable[[Cluster], Awaitable[SOPDraft | None]]

EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class DreamLimits:
    """Limits of one pass, and its pace. Times are in seconds.

    `duty` is the share of time in which a pass works. It sleeps during the remaining time, so that tasks can use
    the processor. `patience`: how long a pass waits for running tasks before it stops. `seconds`: the time limit of
    the pass. Each step may use an equal share of this time, and continues from its cursor in the next pass.
    """

    interval: float = 300.0
    settle: float = 30.0
    patience: float = 120.0
    duty: float = 0.1
    slice: int = 512
    records: int = 1_000_000
    pairs: int = 100_000
    rules: int = 10_000
    drafts: int = 3
    hypotheses: int = 3
    proposals: int = 1
    seconds: float = math.inf


# The limits of the pass that a one-shot command runs at its end, between showing the result and the end of the
# process.
BRIEF = DreamLimits(duty=1.0, slice=256, seconds=0.2)


class TasksRunning(Exception):
    """Raised if tasks keep the machine busy for longer than the pass waits. The next pass continues where this one
    stopped."""


@dataclass(slots=True)
class Findings:
    """The results of a running pass, from which the report is made."""

    examined: int = 0
    forgotten: int = 0
    finished: bool = True
    drafts_skipped: int = 0
    forgotten_examples: list[MemoryChange] = field(default_factory=list[MemoryChange])
    demoted: list[MemoryChange] = field(default_factory=list[MemoryChange])
    promoted: list[MemoryChange] = field(default_factory=list[MemoryChange])
    hypotheses: list[MemoryChange] = field(default_factory=list[MemoryChange])
    proposals: list[str] = field(default_factory=list[str])
    biases: list[MemoryChange] = field(default_factory=list[MemoryChange])
    scale: float = 1.0

    def report(self, dream_id: str, started_at: datetime, duration_ms: int, error: str | None) -> DreamReport:
        """Return the finished report. Each list is limited to its first twenty entries."""
        found: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        lists = (each.name for each in fields(self) if each.default is MISSING)
        cut = {name: getattr(self, name)[:EXAMPLES] for name in lists}
        ended = {"dream_id": dream_id, "started_at": started_at, "duration_ms": duration_ms, "error": error}
        return DreamReport.model_validate({**found, **cut, **ended, "finished": self.finished and error is None})


@dataclass(slots=True)
class Pass:
    """One pass: the ports that its steps use, and the findings so far."""

    store: DreamStore
    clock: Clock
    ids: Ids
    limits: DreamLimits
    busy: Callable[[], bool]
    publish: Callable[[Contract], object]
    draft: Draft | None
    findings: Findings = field(default_factory=Findings)
    until: float = math.inf
    _resumed_at: float | None = None

    async def pace(self) -> None:
        """Sleep between two slices, in proportion to the work done, and until no task is running.

        Raises TasksRunning if the tasks run longer than `patience`.
        """
        now = self.clock.monotonic()
        worked = now - self._resumed_at if self._resumed_at is not None else 0.0
        await self.clock.sleep(worked * (1.0 / self.limits.duty - 1.0))
        waited_since = self.clock.monotonic()
        while self.busy():
            if self.clock.monotonic() - waited_since > self.limits.patience:
                raise TasksRunning
            await self.clock.sleep(0.25)
        self._resumed_at = self.clock.monotonic()

    async def slices(
        self, cursor: str, most: int, size: int, look: Callable[[str | None, int], Awaitable[Slice[T]]]
    ) -> AsyncGenerator[Slice[T]]:
        """Yield the entries of a scan in slices, beginning at the last pass's cursor, up to `most` entries and the
        step's time limit.

        The cursor moves only after the caller has processed a slice. A crash therefore repeats a slice and loses
        nothing.
        """
        after = await self.store.mark(cursor) or None
        while most > 0 and self.clock.monotonic() < self.until:
            await self.pace()
            found = await look(after, min(size, most))
            yield found
            most, after = most - found.examined, found.after
            await self.store.set_mark(cursor, after)
            if after is None:
                return
        self.findings.finished = False

    async def tally(self, name: str) -> int:
        """Return the number of times that an event has happened in this store."""
        return int(await self.store.mark(f"tally:{name}") or 0)

    async def count(self, name: str) -> None:
        """Add one to the number of times that an event has happened."""
        await self.store.set_mark(f"tally:{name}", str(await self.tally(name) + 1))

    async def keep(self, lesson: Lesson, origin: Origin, mark: str, value: str) -> Megram:
        """Store a lesson of the Dreamer and a mark atomically, and publish the lesson."""
        megram = lesson.megram(self.ids.new(), self.clock.now(), origin)
        await self.store.store(megram, mark, value)
        self.publish(MemoryWritten.of(megram))
        return megram


def changed(megram: Megram, reason: str) -> MemoryChange:
    """Return the report's entry for a megram."""
    return MemoryChange(megram_id=megram.id, space=megram.space, entity=megram.entity, reason=reason)
