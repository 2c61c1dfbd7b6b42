"""Count the events of one report window, such as violations and tool failures, and merge windows of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from artoo.contracts.audit import AuditReport, Finding, GapTrend, Nature, ToolHealth
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped
from artoo.contracts.execution import CorrectionSignal, ExecutionResult, SubTaskOutcome, ToolCalled
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import MemoryRead
from artoo.contracts.roles import Role
from artoo.contracts.solution import Decided, FinalResult, RoleFailure, StoppedBy

MOST_LISTED = 100
MOST_TASKS = 10_000
_STEADY = 1e-9
_ANSWERS = "answers "
_OF_THE_SOLVER = (StoppedBy.COST, StoppedBy.DIVERGENCE, StoppedBy.REPLANS)
"""Endings after replanning without success. The direction was wrong, or the budget was misjudged (Appendix C)."""

_LISTS: dict[Nature, str] = {
    "violation": "boundary_violations",
    "drift": "drift_alerts",
    "anomaly": "anomalies",
    "loss": "losses",
}


@dataclass(slots=True)
class Window:
    """The counts since the time `start`. Its size is limited, and it contains plain JSON values, so that it can be
    stored directly."""

    start: datetime
    counts: Counter[str] = field(default_factory=Counter[str])
    tasks: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    listed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def empty(self) -> bool:
        """Return whether nothing was counted in the window."""
        return not self.counts and not self.tasks

    def observe(self, envelope: Envelope) -> None:
        """Count one message."""
        counts = self.counts
        counts["messages"] += 1
        if envelope.task_id and (envelope.task_id in self.tasks or len(self.tasks) < MOST_TASKS):
            self.tasks.setdefault(envelope.task_id, [])
        match envelope.payload:
            case ToolCalled(call=call):
                counts["calls"] += 1
                counts["failed calls"] += call.status.failed
            case ExecutionResult() as result:
                counts["execution failures"] += result.status == "failed"
            case SubTaskOutcome() as outcome if outcome.corrections:
                first, last = outcome.gap_trajectory[0].score, outcome.gap_trajectory[-1].score
                counts[f"corrected {_trend((1 - first, 1 - last))}"] += 1
            case RoleFailure() as failure:
                counts[f"{_ANSWERS}{failure.role}"] += 1
            case MemoryRead(error=str()):
                counts[f"{_ANSWERS}{Role.MEMORY}"] += 1
            case CorrectionSignal() as signal:
                environmental = signal.failure_class is FailureClass.ENVIRONMENTAL
                counts["environmental retries" if environmental else "logical retries"] += 1
            case Decided() as decided:
                distances = self.tasks.get(envelope.task_id)
                if distances is not None and len(distances) < MOST_LISTED:
                    distances.append(round(decided.loss.D, 6))
            case FinalResult() as result:
                counts[f"ended {result.directive}"] += 1
                for unmet in result.unmet:
                    counts[f"{_ANSWERS}{unmet.accountable}"] += 1
                if result.stopped_by in _OF_THE_SOLVER:
                    counts[f"{_ANSWERS}{Role.SOLVER}"] += 1
            case MessagesDropped() as drops:
                counts["dropped"] += drops.count
            case _:
                return

    def add(self, finding: Finding) -> None:
        """Count one finding, and list it if there is room."""
        self.counts[f"found {finding.nature}"] += 1
        if finding.accountable is not None:
            self.counts[f"{_ANSWERS}{finding.accountable}"] += 1
        listed = self.listed.setdefault(_LISTS[finding.nature], [])
        if len(listed) < MOST_LISTED:
            place = f" (task {finding.task_id})" if finding.task_id else ""
            listed.append(f"{finding.rule}: {finding.what}{place}")

    def lost(self, count: int) -> None:
        """Count messages that the Auditor itself did not get."""
        self.counts["lost"] += count
        self.counts[f"{_ANSWERS}{Role.AUDITOR}"] += 1

    def merge(self, other: Window) -> None:
        """Add another window. It may be of another process, or of this process before a restart."""
        self.start = min(self.start, other.start)
        self.counts.update(other.counts)
        for task, distances in other.tasks.items():
            if task in self.tasks or len(self.tasks) < MOST_TASKS:
                self.tasks[task] = [*self.tasks.get(task, []), *distances][-MOST_LISTED:]
        for name, lines in other.listed.items():
            self.listed[name] = [*self.listed.get(name, []), *lines][:MOST_LISTED]

    def report(self, trigger: Literal["periodic", "on-demand"], at: datetime) -> AuditReport:
        """Return the report of this window."""
        counts = self.counts
        return AuditReport(
            trigger=trigger,
            window_start=min(self.start, at),
            window_end=at,
            messages_observed=counts["messages"],
            tasks_observed=len(self.tasks),
            tasks_ended=_named(counts, "ended "),
            total_corrections=counts["environmental retries"] + counts["logical retries"],
            correction_trends=_named(counts, "corrected "),
            accountable=_named(counts, _ANSWERS),
            gap_trends=tuple(_trends(self.tasks)),
            boundary_violations=tuple(self.listed.get("boundary_violations", ())),
            drift_alerts=tuple(self.listed.get("drift_alerts", ())),
            anomalies=tuple(self.listed.get("anomalies", ())),
            losses=tuple(self.listed.get("losses", ())),
            findings=_named(counts, "found "),
            tool_health=ToolHealth(
                execution_failures=counts["execution failures"],
                environmental_retries=counts["environmental retries"],
                logical_retries=counts["logical retries"],
                calls=counts["calls"],
                failed_calls=counts["failed calls"],
            ),
            forgotten=counts["forgotten"],
            messages_dropped=counts["dropped"],
            messages_lost=counts["lost"],
        )


def _named(counts: Counter[str], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in sorted(counts.items()) if name.startswith(prefix)}


def _trends(tasks: dict[str, list[float]]) -> Sequence[GapTrend]:
    return [
        GapTrend(task_id=task, trend=_trend(distances), distances=tuple(distances))
        for task, distances in list(tasks.items())[-MOST_LISTED:]
        if len(distances) > 1
    ]


def _trend(distances: Sequence[float]) -> Literal["improving", "steady", "worsening"]:
    moved = distances[-1] - distances[0]
    if abs(moved) <= _STEADY:
        return "steady"
    return "improving" if moved < 0 else "worsening"
