"""What the Auditor remembers of a running task: only what its rules ask for, and never without a bound."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from artoo.auditor.law import Law, Terms
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.criteria import Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import (
    CorrectionSignal,
    CriterionVerdict,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
)
from artoo.contracts.memory import MegramState
from artoo.contracts.plan import DispatchManifest, Plan, SubTask
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import Decided, Halt, OutcomeSummary, PlanDirective, ReplanRequest

Act = tuple[str, str]
"""Verb and target of something that a person was asked about."""


@dataclass(slots=True)
class SubTaskNotes:
    """One subtask as the stream told it; attempts are numbered from 1.

    `steps` counts the executor's model calls, `said` is their text, `judge_said` what the validator's model
    answered in each attempt, with the evidence that it was shown. `trials` are what second ways printed.
    """

    subtask: SubTask | None = None
    calls: defaultdict[int, list[ToolCall]] = field(default_factory=lambda: defaultdict[int, list[ToolCall]](list))
    results: list[ExecutionResult] = field(default_factory=list[ExecutionResult])
    judged: defaultdict[int, list[CriterionVerdict]] = field(
        default_factory=lambda: defaultdict[int, list[CriterionVerdict]](list)
    )
    corrections: list[CorrectionSignal] = field(default_factory=list[CorrectionSignal])
    outcome: SubTaskOutcome | None = None
    steps: int = 0
    said: list[str] = field(default_factory=list[str])
    judge_said: defaultdict[int, list[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict[int, list[tuple[str, str]]](list)
    )
    trials: list[str] = field(default_factory=list[str])
    repeated: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @property
    def attempt(self) -> int:
        """The attempt under way, or the last one when a result is being judged."""
        return max(1, len(self.results))

    def result(self, attempt: int) -> ExecutionResult | None:
        """The result of an attempt, if there was one."""
        return next((each for each in self.results if each.attempt == attempt), None)

    def changed_before(self, call: ToolCall) -> bool:
        """Whether another call of this subtask has changed something."""
        return any(each.changed_something for calls in self.calls.values() for each in calls if each != call)

    def every_call(self) -> tuple[ToolCall, ...]:
        """The calls of all results, in order."""
        return tuple(call for result in self.results for call in result.attempt_calls)


@dataclass(slots=True)
class RoundNotes:
    """One plan and what became of it. `judged` are R4b's verdicts, `merge_calls` what its model was asked."""

    plan: Plan
    manifest: DispatchManifest | None = None
    judged: list[CriterionVerdict] = field(default_factory=list[CriterionVerdict])
    merge_calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(slots=True)
class ConsentNotes:
    """Questions and answers of one task. `refused` are the acts that stand refused, with whose no it was."""

    asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest])
    answered: dict[str, ConfirmationAnswer] = field(default_factory=dict[str, ConfirmationAnswer])
    refused: dict[Act, str] = field(default_factory=dict[Act, str])


@dataclass(slots=True)
class Spending:
    """What the task's models have used so far, as ModelCalled says. `answered`: of calls that succeeded.

    `beyond` counts calls that were made when the tokens of the budget were used up already.
    """

    calls: int = 0
    tokens: int = 0
    answered: int = 0
    answered_tokens: int = 0
    beyond: int = 0


@dataclass(slots=True)
class TaskNotes:
    """One task. `partial`: not everything was seen, so what is missing proves nothing.

    `kinds` is shared by all tasks: task and kind of every message that is remembered, by id. `drafts` are hashes of
    what the planner's model has answered. `tuned`: the law for one type of task, by the slug of its intent.
    `found`: findings so far, those beyond their limit too.
    """

    task_id: str
    kinds: dict[str, tuple[str, str]]
    law: Law = field(default_factory=Law)
    tuned: dict[str, Law] = field(default_factory=dict[str, Law])
    budget_ms: float | None = None
    partial: bool = False
    seen: int = 0
    found: int = 0
    latest: Envelope | None = None
    request: UserRequest | None = None
    spec: TaskSpec | None = None
    criteria: tuple[Criterion, ...] = ()
    drafts: list[int] = field(default_factory=list[int])
    rounds: list[RoundNotes] = field(default_factory=list[RoundNotes])
    subtasks: dict[str, SubTaskNotes] = field(default_factory=dict[str, SubTaskNotes])
    replans: dict[str, ReplanRequest] = field(default_factory=dict[str, ReplanRequest])
    summaries: dict[str, OutcomeSummary] = field(default_factory=dict[str, OutcomeSummary])
    decided: list[tuple[Decided, str | None]] = field(default_factory=list[tuple[Decided, str | None]])
    directives: list[PlanDirective] = field(default_factory=list[PlanDirective])
    before: Terms | None = None
    worsening: int = 0
    taught: list[MegramState] = field(default_factory=list[MegramState])
    halt: Halt | None = None
    ending: Ending | None = None
    settled: Settled | None = None
    failed_roles: set[Role] = field(default_factory=set[Role])
    consent: ConsentNotes = field(default_factory=ConsentNotes)
    spending: Spending = field(default_factory=Spending)
    dangling: set[str] = field(default_factory=set[str])

    @property
    def round(self) -> RoundNotes | None:
        """The round under way."""
        return self.rounds[-1] if self.rounds else None

    @property
    def number(self) -> int:
        """The number of the round under way, from 1."""
        return len(self.directives) + 1

    def of(self, subtask_id: str | None) -> SubTaskNotes:
        """The notes of a subtask; empty ones that are not kept when it was never dispatched."""
        known = self.subtasks.get(subtask_id) if subtask_id is not None else None
        return known if known is not None else SubTaskNotes()

    def cause_kind(self, envelope: Envelope) -> str | None:
        """The kind of the message that this one answers, if it is remembered."""
        found = self.kinds.get(envelope.cause_id) if envelope.cause_id is not None else None
        return found[1] if found is not None else None

    def outcomes(self) -> dict[str, SubTaskOutcome]:
        """Every outcome that R4a has published, as the join left it, by subtask."""
        return {key: notes.outcome for key, notes in self.subtasks.items() if notes.outcome is not None}


def unexpected(task: TaskNotes, subtask_id: str) -> Iterator[str]:
    """Why nothing can come of a subtask: it was never dispatched, or has its outcome already."""
    notes = task.of(subtask_id)
    if notes.subtask is None:
        yield f"subtask {subtask_id} was never dispatched"
    elif notes.outcome is not None:
        yield f"subtask {subtask_id} has its outcome already"
