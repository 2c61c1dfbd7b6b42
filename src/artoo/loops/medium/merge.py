"""What R4b does in code: merge what matched, and decide what needs no reader. No model, no guessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from artoo.contracts.changes import Conflict
from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.execution import CriterionVerdict, DecidedBy, FailureClass, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.roles import Role
from artoo.loops.fast.checks import CheckResult


@dataclass(slots=True)
class FanIn:
    """One round's collected outcomes, with what the manifest says is still to come."""

    manifest: DispatchManifest
    carried: tuple[SubTaskOutcome, ...] = ()
    outcomes: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    joined: set[str] = field(default_factory=set[str])
    conflicts: tuple[Conflict, ...] = ()
    expected: frozenset[str] = field(init=False)
    failed: bool = field(init=False, default=False)
    """True when an outcome failed: later groups will not start."""

    def __post_init__(self) -> None:
        self.expected = frozenset(entry.subtask_id for entry in self.manifest.subtasks)
        self.failed = any(outcome.status == "failed" for outcome in self.outcomes.values())

    def add(self, outcome: SubTaskOutcome) -> bool:
        """Takes an outcome of this round; False when it belongs to no subtask of it."""
        if outcome.subtask_id not in self.expected:
            return False
        self.outcomes[outcome.subtask_id] = outcome
        self.failed = self.failed or outcome.status == "failed"
        return True

    def join(self, joined: Joined) -> None:
        """What these subtasks did can be seen in the task's view now."""
        if joined.round == self.manifest.round:
            self.joined.update(joined.subtask_ids)
            self.conflicts += joined.conflicts

    @property
    def complete(self) -> bool:
        """True when every subtask that will run has ended, and what they did is joined.

        The dispatcher joins whole groups, and starts no other after one that failed or met a conflict.
        """
        if self.failed or self.conflicts:
            return bool(self.joined) and self.joined >= self.outcomes.keys()
        return len(self.joined) == len(self.expected)

    @property
    def not_run(self) -> int:
        """Criteria of subtasks that never ran to an outcome."""
        return sum(
            len(entry.success_criteria) for entry in self.manifest.subtasks if entry.subtask_id not in self.outcomes
        )

    @property
    def everything(self) -> tuple[SubTaskOutcome, ...]:
        """Carried outcomes, then this round's in the order of the plan."""
        this = [self.outcomes[e.subtask_id] for e in self.manifest.subtasks if e.subtask_id in self.outcomes]
        return (*self.carried, *this)

    @property
    def matched(self) -> tuple[SubTaskOutcome, ...]:
        """All that stands."""
        return tuple(outcome for outcome in self.everything if outcome.status == "matched")


def merged_output(outcomes: Sequence[SubTaskOutcome]) -> str:
    """The outputs of matched subtasks: one as it is, several each under what it was for."""
    texts = [(outcome.intent.strip(), outcome.output.strip()) for outcome in outcomes]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"{intent}\n{output}" for intent, output in texts if output)


def task_verdict(
    criterion: Criterion,
    outcomes: Sequence[SubTaskOutcome],
    checks: Mapping[str, CheckResult],
) -> CriterionVerdict | None:
    """The verdict on a task criterion as far as code can tell; None when a reader is needed.

    The outcome of a task's only subtask covers a criterion of the same text: that was judged on the same output.
    Otherwise a check decides. What it misses while a subtask is unfinished is missing because of that subtask,
    and has no failure class of its own.
    """
    if len(outcomes) == 1:
        for verdict in outcomes[0].criteria_verdicts:
            if verdict.criterion == criterion.text:
                return verdict.model_copy(update={"accountable": Role.PLANNER})
    check = checks.get(criterion.text)
    if check is None:
        return None
    unfinished = any(outcome.status == "failed" for outcome in outcomes)
    failure_class = None if unfinished else check.failure_class
    return _verdict(criterion, check.passed, check.evidence, failure_class, DecidedBy.CHECK)


def judged_verdict(
    criterion: Criterion, passed: bool, evidence: str, failure_class: FailureClass | None
) -> CriterionVerdict:
    """The verdict on a task criterion that a reader judged."""
    return _verdict(criterion, passed, evidence, failure_class, DecidedBy.JUDGEMENT)


def not_judged(criterion: Criterion) -> CriterionVerdict:
    """Unmet because something it rests on is missing; it has no failure class of its own."""
    return _verdict(criterion, False, "not judged: a subtask is unfinished", None, DecidedBy.FACT)


def _verdict(
    criterion: Criterion, passed: bool, evidence: str, failure_class: FailureClass | None, by: DecidedBy
) -> CriterionVerdict:
    return CriterionVerdict(
        criterion=criterion.text,
        mode=criterion.mode,
        verdict="pass" if passed else "fail",
        failure_class=None if passed else failure_class,
        evidence=evidence[:1_000],
        decided_by=by,
        failed_attempts=0 if passed else 1,
        accountable=Role.PLANNER,
    )


def conflict_verdict(conflict: Conflict) -> CriterionVerdict:
    """Parallel subtasks that left one path differently: the plan has to put them in an order."""
    return CriterionVerdict(
        criterion=f"Only one of the subtasks that run in parallel changes {conflict.path}.",
        mode=Mode.VERIFIABLE,
        verdict="fail",
        failure_class=FailureClass.LOGICAL,
        evidence=conflict.reason,
        decided_by=DecidedBy.FACT,
        accountable=Role.PLANNER,
    )
