"""Read rounds, results, costs and decisions of ended tasks from their logs, for tuning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.contracts.events import ModelCalled
from artoo.contracts.plan import Plan, PlanRefused
from artoo.contracts.recording import TaskOpened, TaskResumed
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.solution import Decided, Directive, FinalResult, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.contracts.steering import EffortChosen
from artoo.control.decision import Evidence
from artoo.loops.medium.trajectory import WRONG_APPROACH, Gap, measure
from artoo.ports.spool import Gap as Missing
from artoo.runtime.replay.standing import standing
from artoo.runtime.replay.what_if import deadline_ms
from artoo.tasklog.reader import TaskLogReader, list_tasks

ENDS = frozenset({Directive.ACCEPT, Directive.SUCCESS, Directive.ABANDON})
KINDS = frozenset(
    each.kind()
    for each in (
        *(TaskOpened, UserRequest, TaskSpec, Plan, PlanRefused, ReplanRequest, OutcomeSummary),
        *(Decided, ModelCalled, FinalResult, TaskResumed, EffortChosen),
    )
)
"""The kinds of messages that are read from a log."""

_OUTSIDE = frozenset(
    {
        *(StoppedBy.NO_MODEL, StoppedBy.INTERRUPTED, StoppedBy.INTERNAL),
        *(StoppedBy.PROMPT_REFUSED, StoppedBy.REFUSED_BY_USER, StoppedBy.MISSING_INPUT, StoppedBy.QUESTION),
    }
)
"""Reasons to stop that have nothing to do with the control law. A budget of time or calls that was used up is an
ordinary outcome, so it is not one of them."""


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One decision. `met`: the share of criteria that are met, with the same weights as in D. `calls`: the number
    of model calls so far.

    `by_law`: false if the law had no choice, because all criteria were met, or time or budget were used up.
    """

    gap: Gap
    elapsed_ms: float
    budget_ms: float
    taken: Directive
    calls: int
    by_law: bool = True
    may_replan: bool = True

    @property
    def met(self) -> float:
        """Return the share of criteria that are met, in [0, 1]."""
        return 1.0 - self.gap.distance


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that has ended. `type` is the slug of its intent. Memory stores the task's lessons under this slug."""

    task_id: str
    type: str
    steps: tuple[LoggedDecision, ...]


@dataclass(frozen=True, slots=True)
class Logs:
    """The records, and the numbers of tasks that could not be used, by reason."""

    records: tuple[EndedTask, ...]
    left_out: tuple[tuple[str, int], ...] = ()


def read_logs(home: Path, limit: int) -> Logs:
    """Read the latest `limit` tasks of a home, oldest first."""
    records, left_out = list[EndedTask](), dict[str, int]()
    for summary in reversed(list_tasks(home, limit)):
        found = _read(summary.directory)
        if isinstance(found, EndedTask):
            records.append(found)
        else:
            left_out[found] = left_out.get(found, 0) + 1
    return Logs(tuple(records), tuple(sorted(left_out.items())))


def _read(directory: Path) -> EndedTask | str:
    try:
        messages = list(TaskLogReader(directory).select(KINDS))
    except (ConfigurationError, MessageUnreadable, OSError):
        return "cannot be read"
    if any(isinstance(each, Missing) for each in messages):
        return "the log has gaps"
    return record_of(standing(each for each in messages if isinstance(each, Envelope)))


def record_of(stream: Sequence[Envelope]) -> EndedTask | str:
    """Return the record of the messages of a task that are still valid. Return the reason if there is no record."""
    spec = next((each.payload for each in stream if isinstance(each.payload, TaskSpec)), None)
    result = next((each.payload for each in reversed(stream) if isinstance(each.payload, FinalResult)), None)
    steps = tuple(_steps(stream))
    if result is None or not steps or steps[-1].taken not in ENDS:
        return "has not ended"
    if spec is None or result.stopped_by in _OUTSIDE:
        return "was ended from outside"
    return EndedTask(stream[0].task_id, spec.task_id, steps)


def _steps(stream: Sequence[Envelope]) -> Iterator[LoggedDecision]:
    by_id = {envelope.id: envelope.payload for envelope in stream}
    budget = min(_budget_ms(stream), deadline_ms(stream))
    calls = 0
    for envelope in stream:
        match envelope.payload:
            case ModelCalled(requests=requests):
                calls += requests
            case EffortChosen(seconds=seconds):
                budget = seconds * 1_000
            case Decided() as decided:
                yield _step(decided, by_id.get(envelope.cause_id or ""), budget, calls)
            case _:
                continue


def _step(decided: Decided, cause: object, budget_ms: float, calls: int) -> LoggedDecision:
    elapsed, taken = decided.elapsed_ms or 0.0, decided.directive
    match cause:
        case OutcomeSummary(task_verdicts=verdicts):
            return LoggedDecision(
                Gap(0.0, 0, 0, len(verdicts), Evidence()), elapsed, budget_ms, taken, calls, by_law=False
            )
        case ReplanRequest() as request:
            may = request.recommendation == "replan" and not decided.exhausted
            free = request.stopped_by is None
            return LoggedDecision(measure(request), elapsed, budget_ms, taken, calls, by_law=free, may_replan=may)
        case PlanRefused():
            return LoggedDecision(WRONG_APPROACH, elapsed, budget_ms, taken, calls)
        case _:
            gap = Gap(decided.loss.D, 0, 0, decided.criteria, Evidence(matched_subtasks=0))
            return LoggedDecision(gap, elapsed, budget_ms, taken, calls, by_law=False)


def _budget_ms(stream: Iterable[Envelope]) -> float:
    opened = next((each.payload for each in stream if isinstance(each.payload, TaskOpened)), None)
    given = opened.hyperparameters.get("time_budget_ms") if opened is not None else None
    return float(given) if isinstance(given, int | float) else 300_000.0
