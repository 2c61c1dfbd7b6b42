"""Memory of one running task for the invariants, with its spending, and the most facts of a kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.criteria import CheckAmended, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CorrectionSignal, ExecutionResult, SubTaskOutcome, ToolCalled
from artoo.contracts.plan import DispatchManifest, Plan
from artoo.contracts.recording import TaskOpened
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import Decided, Halt, PlanDirective, ReplanRequest
from artoo.contracts.steering import EffortChosen

MOST_KEPT = 1_000
"""Limit for each list and mapping. Healthy tasks need a handful. Tasks above it are checked less strictly."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Spending:
    """The cost of a task, from ModelCalled and ToolCalled messages. `answered`: successful model calls.

    `beyond`: number of model calls made after the token budget was used up.
    """

    calls: int = 0
    tokens: int = 0
    answered: int = 0
    answered_tokens: int = 0
    beyond: int = 0
    tools: int = 0


@dataclass(slots=True)
class TaskNotes:
    """The notes on one task. `partial`: messages were missed, so a missing message proves nothing.

    `kinds`: message kinds by message id. `dangling`: causes that were named before they were on the stream.
    `account`: the last ReplanRequest. `decided`: the last decision and its cause. `drafts`: hashes of the planner's
    answers. `refused`: verb and target of refused operations, with who refused. `corrections`: counts by subtask,
    without matched subtasks. `repeated`: how often a subtask made the same call. `found`: number of findings so
    far.
    """

    task_id: str
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    partial: bool = False
    seen: int = 0
    found: int = 0
    latest: Envelope | None = None
    dangling: set[str] = field(default_factory=set[str])
    most_calls: int | None = None
    most_tokens: int | None = None
    spending: Spending = field(default_factory=Spending)
    criteria: tuple[Criterion, ...] = ()
    manifest: DispatchManifest | None = None
    account: ReplanRequest | None = None
    decided: tuple[Decided, str | None] | None = None
    directive: PlanDirective | None = None
    drafts: list[int] = field(default_factory=list[int])
    asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest])
    answered: dict[str, ConfirmationAnswer] = field(default_factory=dict[str, ConfirmationAnswer])
    refused: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    corrections: Counter[str] = field(default_factory=Counter[str])
    repeated: Counter[tuple[str, str, int]] = field(default_factory=Counter[tuple[str, str, int]])
    attempts_ended: dict[tuple[str, int], None] = field(default_factory=dict[tuple[str, int], None])
    ending: Ending | None = None
    settled: Settled | None = None
    halted: bool = False

    @property
    def abandoning(self) -> bool:
        """Return whether the task ends without being accepted."""
        return self.ending is not None and self.ending.directive == "abandon"

    def cause_kind(self, envelope: Envelope) -> str | None:
        """Return the kind of this message's cause. None if it is not known."""
        return None if envelope.cause_id is None else self.kinds.get(envelope.cause_id)

    def absorb(self, envelope: Envelope) -> None:
        """Update the notes with one message."""
        self.seen += 1
        self.latest = envelope
        match envelope.payload:
            case ModelCalled() as called:
                self._spend(called)
            case ToolCalled() as called:
                self.spending.tools += 1
                call = (called.subtask_id, called.call.tool, hash(called.call.input))
                self._put(self.repeated, call, self.repeated[call] + 1)
            case ExecutionResult() as result:
                self._put(self.attempts_ended, (result.subtask_id, result.attempt), None)
            case CorrectionSignal() as signal:
                self._put(self.corrections, signal.subtask_id, self.corrections[signal.subtask_id] + 1)
            case SubTaskOutcome() as outcome:
                if outcome.status == "matched":
                    self.corrections.pop(outcome.subtask_id, None)
            case ConfirmationRequest() as request:
                self._put(self.asked, envelope.id, request)
            case ConfirmationAnswer() as answer:
                self._consent(answer, envelope.cause_id or "")
            case _:
                self._medium(envelope)

    def _medium(self, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskOpened(max_calls=calls, max_tokens=tokens) | EffortChosen(calls=calls, tokens=tokens):
                self.most_calls, self.most_tokens = calls, tokens
            case Plan() as plan:
                known = {each.text for each in self.criteria}
                self.criteria = (*self.criteria, *(each for each in plan.task_criteria if each.text not in known))
            case CheckAmended() as amended:
                self._amend(amended)
            case DispatchManifest() as manifest:
                self.manifest = manifest
            case ReplanRequest() as request:
                self.account = request
            case Decided() as decided:
                self.decided = (decided, envelope.cause_id)
            case PlanDirective() as directive:
                self.directive = directive
            case Ending() as ending:
                self.ending = self.ending or ending
            case Settled() as settled:
                self.settled = settled
            case Halt():
                self.halted = True
            case _:
                return

    def _spend(self, called: ModelCalled) -> None:
        spending, tokens = self.spending, tokens_of(called)
        if tokens and self.most_tokens is not None and spending.tokens >= self.most_tokens:
            spending.beyond += 1
        spending.calls += called.billed
        spending.tokens += tokens
        if called.error is not None:
            return
        spending.answered += called.billed
        spending.answered_tokens += tokens
        if called.contract == "Plan" and len(self.drafts) < MOST_KEPT:
            self.drafts.append(hash(called.answer))

    def _consent(self, answer: ConfirmationAnswer, question: str) -> None:
        request = self.asked.get(question)
        if question not in self.answered:
            self._put(self.answered, question, answer)
        for act in request.acts if request is not None else ():
            if answer.consent.is_yes:
                self.refused.pop((act.verb, act.target), None)
            else:
                self._put(self.refused, (act.verb, act.target), answer.by)

    def _amend(self, amended: CheckAmended) -> None:
        """Replace the check of a criterion of the planner, as announced by R2 in CheckAmended."""
        self.criteria = tuple(
            each.model_copy(update={"check": amended.after})
            if (each.text, each.check, each.by) == (amended.criterion, amended.before, "planner")
            else each
            for each in self.criteria
        )

    def _put(self, kept: dict[K, V], key: K, value: V) -> None:
        if key in kept or len(kept) < MOST_KEPT:
            kept[key] = value
        else:
            self.partial = True


def tokens_of(called: ModelCalled) -> int:
    """Return the number of tokens that a call used, prompt and answer together."""
    return called.usage.prompt_tokens + called.usage.completion_tokens
