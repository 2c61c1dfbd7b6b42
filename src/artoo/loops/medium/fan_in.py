"""What R4b does in code: merge what matched, and decide what needs no reader. No model, no guessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from artoo.contracts.changes import Conflict
from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.execution import CriterionVerdict, DecidedBy, FailureClass, SubTaskOutcome
from artoo.contracts.findings import Found, Reason
from artoo.contracts.plan import DispatchManifest, Joined
from artoo.contracts.roles import Role
from artoo.loops.fast.checks import CheckResult
from artoo.loops.fast.judging import verdict_on
from artoo.loops.fast.report import Judgement


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

    @property
    def hopeless(self) -> tuple[SubTaskOutcome, ...]:
        """All that say why it cannot be done, and were believed."""
        return tuple(outcome for outcome in self.everything if outcome.hopeless)


def merged_output(outcomes: Sequence[SubTaskOutcome]) -> str:
    """What was reached, for an ending without an answer: one output as it is, several each under its purpose."""
    texts = [(outcome.intent.strip(), outcome.output.strip()) for outcome in outcomes]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"{intent}\n{output}" for intent, output in texts if output)


def answering(fan_in: FanIn) -> SubTaskOutcome | None:
    """The outcome that is the answer to the whole without anybody merging: the only one, or else None."""
    matched = fan_in.matched
    return matched[0] if len(matched) == 1 else None


def concluding(fan_in: FanIn) -> SubTaskOutcome | None:
    """The outcome of a last subtask that knew all others' results; its output concludes them."""
    if fan_in.carried or len(fan_in.outcomes) < 2:
        return None
    *before, last = sorted(fan_in.manifest.subtasks, key=lambda entry: entry.sequence)
    alone = all(entry.sequence < last.sequence for entry in before)
    return fan_in.outcomes.get(last.subtask_id) if alone else None


def covered(criterion: Criterion, outcome: SubTaskOutcome) -> CriterionVerdict | None:
    """The verdict that a subtask's own loop reached on a criterion of the same text: on the same output."""
    for verdict in outcome.criteria_verdicts:
        if verdict.criterion == criterion.text:
            return verdict.model_copy(update={"accountable": Role.PLANNER})
    return None


def checked(criterion: Criterion, check: CheckResult, *, unfinished: bool) -> CriterionVerdict:
    """What a check decided. What it misses while a subtask is unfinished is missing because of that subtask, and
    has no failure class of its own.
    """
    failure_class = None if unfinished else check.failure_class
    verdict = "pass" if check.passed else "fail"
    return _verdict(criterion, verdict, check.evidence, failure_class, DecidedBy.CHECK)


def judged(criterion: Criterion, judgement: Judgement, *, trusted: bool) -> CriterionVerdict:
    """What the writer of the answer says about a criterion; of a small model it decides nothing."""
    if judgement.verdict == "open" or not trusted:
        reason = judgement.evidence if trusted else "the judgement of a small model decides nothing"
        return left_open(criterion, reason)
    return _verdict(criterion, judgement.verdict, judgement.evidence, judgement.failure_class, DecidedBy.JUDGEMENT)


def left_open(criterion: Criterion, reason: str) -> CriterionVerdict:
    """Nothing decided it."""
    return _verdict(criterion, "open", reason, None, DecidedBy.NOBODY)


def not_judged(criterion: Criterion) -> CriterionVerdict:
    """Unmet because something it rests on is missing; it has no failure class of its own."""
    return _verdict(criterion, "fail", Reason(found=Found.UNFINISHED), None, DecidedBy.FACT)


def contradicted(criterion: Criterion, fact: str | Reason) -> CriterionVerdict:
    """A fact stands against it."""
    return _verdict(criterion, "fail", fact, FailureClass.LOGICAL, DecidedBy.FACT)


def _verdict(
    criterion: Criterion,
    verdict: Literal["pass", "fail", "open"],
    evidence: str | Reason,
    failure_class: FailureClass | None,
    by: DecidedBy,
) -> CriterionVerdict:
    made = verdict_on(criterion, verdict, evidence, by, failure_class, Role.PLANNER)
    return made.model_copy(update={"failed_attempts": 1}) if verdict == "fail" else made


def conflict_verdict(conflict: Conflict) -> CriterionVerdict:
    """Parallel subtasks that left one path differently: the plan has to put them in an order."""
    text = f"Only one of the subtasks that run in parallel changes {conflict.path}."
    reason = Reason(found=Found.CONFLICT, said=conflict.reason)
    made = _verdict(
        Criterion(text=text, mode=Mode.VERIFIABLE), "fail", reason, FailureClass.LOGICAL, DecidedBy.FACT
    )
    return made.model_copy(update={"failed_attempts": 0})
