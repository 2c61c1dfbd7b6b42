"""Decide allowed board states and moves, reviews by trust level, and complexity rules, as pure functions.

It is a state machine that consists of pure functions. Reference: SPEC section 11.

All decisions of this kind are made here. The other modules of the board call these functions inside the transaction
that moves the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Literal

from artoo.contracts.agents import (
    FOREIGN,
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TrustLevel,
)
from artoo.contracts.errors import ActorRefused, MoveRefused

S = BoardState

TRANSITIONS: Mapping[BoardState, frozenset[BoardState]] = MappingProxyType(
    {
        S.PENDING: frozenset({S.IN_PROGRESS, S.CANCELLED}),
        S.IN_PROGRESS: frozenset({S.BLOCKED, S.REVIEW, S.FAILED}),
        S.BLOCKED: frozenset({S.IN_PROGRESS, S.CANCELLED}),
        S.REVIEW: frozenset({S.COMPLETED, S.REJECTED}),
        S.COMPLETED: frozenset({S.ARCHIVED}),
        S.FAILED: frozenset({S.PENDING, S.CANCELLED}),
        S.REJECTED: frozenset({S.PENDING, S.CANCELLED}),
        S.CANCELLED: frozenset({S.ARCHIVED}),
        S.ARCHIVED: frozenset(),
    }
)
"""The nine states, and all allowed moves between them."""

Threshold = Literal["all", "complex", "critical", "none"]

_REVIEWED: Mapping[Threshold, frozenset[Complexity]] = MappingProxyType(
    {
        "all": frozenset(Complexity),
        "complex": frozenset({Complexity.COMPLEX, Complexity.CRITICAL}),
        "critical": frozenset({Complexity.CRITICAL}),
        "none": frozenset(),
    }
)


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Decides which submissions of an agent are reviewed, and whether the agent may approve those of others."""

    review_threshold: Threshold
    can_approve: bool = False


Policies = Mapping[TrustLevel, TrustPolicy]

SEED_POLICIES: Policies = MappingProxyType(
    {
        TrustLevel.PROBATION: TrustPolicy("all"),
        TrustLevel.STANDARD: TrustPolicy("complex"),
        TrustLevel.TRUSTED: TrustPolicy("critical"),
        TrustLevel.SENIOR: TrustPolicy("none", can_approve=True),
    }
)


@dataclass(frozen=True, slots=True)
class Mover:
    """An actor that requests a move. It is the operator, artoo itself (`trust` is None), or an agent.

    `idle`: the reason why an agent may not work now, because it is paused or stopped. It is empty if the agent may
    work.
    """

    name: str
    trust: TrustLevel | None = None
    idle: str = ""

    @property
    def is_operator(self) -> bool:
        """Return whether the actor is the operator."""
        return self.name == OPERATOR

    @property
    def is_runtime(self) -> bool:
        """Return whether the actor is artoo itself."""
        return self.name == RUNTIME


def check_transition(task_id: str, before: BoardState, after: BoardState) -> None:
    """Raise MoveRefused unless the transition table allows this move."""
    if after in TRANSITIONS[before]:
        return
    allowed = ", ".join(sorted(TRANSITIONS[before])) or "nothing: it is over"
    raise MoveRefused(
        f"Task {task_id} is {before.value} and cannot become {after.value}; what may follow is {allowed}."
    )


def weight(complexity: Complexity | None) -> Complexity:
    """Return the complexity that counts for decisions. A task without a complexity counts as critical."""
    return Complexity.CRITICAL if complexity is None else complexity


@dataclass(frozen=True, slots=True)
class ComplexityRule:
    """An operator's rule that determines the complexity of tasks which have none. A field that is None matches
    every task."""

    complexity: Complexity
    project: str | None = None
    assignee: str | None = None
    by_operator: bool | None = None
    priority: Priority | None = None

    def fits(self, project: str, assignee: str | None, creator: str, priority: Priority) -> bool:
        """Check whether a task matches all fields of the rule. The task of a foreign agent never matches
        `by_operator`."""
        # A rule for a folder also covers the projects below it.
        inside = self.project is None or (bool(project) and PurePath(project).is_relative_to(self.project))
        return (
            inside
            and self.assignee in (None, assignee)
            and (self.by_operator is None or not creator.startswith(FOREIGN))
            and self.by_operator in (None, creator == OPERATOR)
            and self.priority in (None, priority)
        )


def ruled(
    rules: Sequence[ComplexityRule], project: str, assignee: str | None, creator: str, priority: Priority
) -> Complexity | None:
    """Return the complexity of the first rule that matches. Return None if no rule matches."""
    fitting = (rule.complexity for rule in rules if rule.fits(project, assignee, creator, priority))
    return next(fitting, None)


def needs_review(policies: Policies, submitter: Mover, complexity: Complexity | None) -> bool:
    """Check whether the trust policy requires a reviewer's approval for the work of `submitter`."""
    if submitter.is_operator:
        return False
    if submitter.trust is None:
        return True
    return weight(complexity) in _REVIEWED[policies[submitter.trust].review_threshold]


def check_holder(task: BoardTask, mover: Mover, doing: str) -> None:
    """Raise ActorRefused unless `mover` is the task's worker, the operator, or artoo itself."""
    if mover.is_operator or mover.is_runtime or task.assignee == mover.name:
        return
    raise ActorRefused(
        f"Task {task.id} cannot be {doing} by {mover.name}: only {task.assignee or 'nobody'}, who works on it,"
        " and the operator may."
    )


def check_reviewer(policies: Policies, task: BoardTask, mover: Mover, *, demanded: bool = False) -> None:
    """Raise ActorRefused unless `mover` may approve or reject this submission.

    `demanded`: true if the task's sender requires a review, whatever the level of trust of the agent that works on
    it.
    """
    if mover.is_operator:
        return
    if mover.trust is None or not policies[mover.trust].can_approve:
        who = "artoo itself" if mover.trust is None else f"{mover.name}, who is {mover.trust.value},"
        able = ", ".join(level.value for level in policies if policies[level].can_approve)
        raise ActorRefused(
            f"Task {task.id} cannot be reviewed by {who}: only the operator and agents that are"
            f" {able or '(no level)'} may."
        )
    if mover.idle:
        raise ActorRefused(f"Agent {mover.name} may not review: {mover.idle}.")
    if task.reviewer is not None and task.reviewer != mover.name:
        raise ActorRefused(f"Task {task.id} is reviewed by {task.reviewer}, not by {mover.name}.")
    if task.assignee == mover.name and (demanded or needs_review(policies, mover, task.complexity)):
        raise ActorRefused(
            f"Task {task.id} is {mover.name}'s own submission, which somebody else must review; ask the operator."
        )


def check_own(task_id: str, mover: Mover, what: str) -> None:
    """Raise ActorRefused unless `mover` is the operator. `what` names the operation in the error message."""
    if not mover.is_operator:
        raise ActorRefused(f"Task {task_id}: {what} is the operator's, not {mover.name}'s.")


def check_steward(task_id: str, mover: Mover, what: str) -> None:
    """Raise ActorRefused unless `mover` is the operator or artoo itself."""
    if not (mover.is_operator or mover.is_runtime):
        raise ActorRefused(f"Task {task_id} cannot be {what} by {mover.name}: only the operator and artoo may.")


def check_complexity(task_id: str, name: str) -> None:
    """Raise ActorRefused unless the operator or a rule (`policy`) sets the complexity."""
    if name not in (OPERATOR, POLICY):
        raise ActorRefused(
            f"Task {task_id}: its complexity decides who must review it, so the operator or a rule sets it,"
            f" not {name}. Until then it counts as critical."
        )


def way_to_cancel(state: BoardState) -> tuple[BoardState, ...]:
    """Return the moves by which a task in `state` is cancelled. They go through blocked or rejected if there is no
    direct move.

    For a completed, archived or cancelled task only the direct move is returned, which the transition table
    refuses.
    """
    through = {S.IN_PROGRESS: S.BLOCKED, S.REVIEW: S.REJECTED}.get(state)
    return (through, S.CANCELLED) if through is not None else (S.CANCELLED,)
