"""From the stream to the notes: what each kind of message adds to what is known of its task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TypeVar, cast

from artoo.auditor import law as control
from artoo.auditor.law import Law
from artoo.auditor.notes import RoundNotes, SubTaskNotes, TaskNotes
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.conversation import OWN_TOOLS
from artoo.contracts.criteria import CheckAmended
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import (
    CorrectionSignal,
    CriterionJudged,
    ExecutionResult,
    SubTaskOutcome,
    ToolCalled,
)
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.plan import DispatchManifest, Plan, SubTask
from artoo.contracts.recording import Observed, Source, TaskOpened
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import Decided, Halt, OutcomeSummary, PlanDirective, ReplanRequest, RoleFailure
from artoo.contracts.steering import EffortChosen

MOST_SUBTASKS = 1_000
MOST_KEPT = 200
"""Of each list of a subtask's notes; a healthy one has a handful."""
_SAID = 20_000
"""Characters of a model's answer that are kept."""

T = TypeVar("T")

_LAW_NAMES = frozenset(each.name for each in fields(Law))


def absorb(task: TaskNotes, envelope: Envelope) -> None:
    """Adds one message to the notes of its task."""
    task.seen += 1
    task.latest = envelope
    match envelope.payload:
        case ModelCalled() as called:
            _asked(task, called, envelope)
        case ToolCalled() as called:
            notes = _subtask(task, called.subtask_id)
            _keep(notes.calls[called.attempt], called.call)
            notes.repeated[called.call.tool, called.call.input] += 1
        case CriterionJudged() as judged:
            _verdict(task, judged, envelope)
        case SubTask() | ExecutionResult() | CorrectionSignal() | SubTaskOutcome() as payload:
            _fast(task, payload)
        case ConfirmationRequest() | ConfirmationAnswer() as payload:
            _consent(task, payload, envelope)
        case RoleFailure() as failure:
            task.failed_roles.add(failure.role)
        case MemoryWritten() as written:
            _keep(task.taught, written.state)
        case Observed(source=Source.TRIAL) as observed if envelope.subtask_id is not None:
            _keep(_subtask(task, envelope.subtask_id).trials, _printed(observed.answer))
        case _:
            _medium(task, envelope)


def _medium(task: TaskNotes, envelope: Envelope) -> None:
    match envelope.payload:
        case TaskOpened() as opened:
            _opened(task, opened)
        case UserRequest() as request:
            task.request = request
        case TaskSpec() as spec:
            task.spec = spec
            task.law = task.tuned.get(spec.task_id, task.law)
        case Plan() as plan:
            _deadline(task, plan)
            task.rounds.append(RoundNotes(plan))
            known = {each.text for each in task.criteria}
            task.criteria = (*task.criteria, *(each for each in plan.task_criteria if each.text not in known))
        case EffortChosen() as chosen:
            task.law = replace(task.law, most_calls=chosen.calls, most_tokens=chosen.tokens)
            task.budget_ms = chosen.seconds * 1_000
        case CheckAmended() as amended:
            task.criteria = tuple(
                each.model_copy(update={"check": amended.after})
                if (each.text, each.check, each.by) == (amended.criterion, amended.before, "planner")
                else each
                for each in task.criteria
            )
        case DispatchManifest() as manifest if task.round is not None:
            task.round.manifest = manifest
        case OutcomeSummary() as summary:
            task.summaries[envelope.id] = summary
        case ReplanRequest() as request:
            task.replans[envelope.id] = request
        case Decided() as decided:
            _decided(task, decided, envelope)
        case PlanDirective() as directive:
            task.directives.append(directive)
            if task.decided:
                task.before = control.Terms(*_terms(task.decided[-1][0]))
        case Halt() as halt:
            task.halt = halt
        case Ending() as ending:
            task.ending = task.ending or ending
        case Settled() as settled:
            task.settled = settled
        case _:
            return


def _subtask(task: TaskNotes, subtask_id: str) -> SubTaskNotes:
    notes = task.subtasks.get(subtask_id)
    if notes is None:
        notes = SubTaskNotes()
        if len(task.subtasks) < MOST_SUBTASKS:
            task.subtasks[subtask_id] = notes
        else:
            task.partial = True
    return notes


def _keep(kept: list[T], item: T) -> None:
    if len(kept) < MOST_KEPT:
        kept.append(item)


def _asked(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> None:
    spending, tokens = task.spending, called.usage.prompt_tokens + called.usage.completion_tokens
    if tokens and task.law.most_tokens is not None and spending.tokens >= task.law.most_tokens:
        spending.beyond += 1
    spending.calls += called.billed
    spending.tokens += tokens
    if called.error is not None:
        return
    spending.answered += called.billed
    spending.answered_tokens += tokens
    answer = called.answer[:_SAID]
    if called.contract == "Plan":
        _keep(task.drafts, hash(answer))
    elif called.contract == "MergeReport" and task.round is not None:
        _keep(task.round.merge_calls, (answer, called.user.partition("Evidence:\n")[2]))
    elif envelope.subtask_id is None:
        return
    elif called.contract == "ExecutorStep" and envelope.sender is Role.EXECUTOR:
        notes = _subtask(task, envelope.subtask_id)
        calls = () if called.turn is None else called.turn.calls
        notes.steps += sum(call.name not in OWN_TOOLS and not call.problem for call in calls)
        given = (text for call in calls for text in call.arguments.values() if isinstance(text, str))
        for said in (answer, *given):
            _keep(notes.said, said[:_SAID])
    elif called.contract == "ValidationReport":
        notes = _subtask(task, envelope.subtask_id)
        _keep(notes.judge_said[notes.attempt], (answer, called.user.partition("Evidence:\n")[2]))


def _printed(trial: object) -> str:
    """What a second way printed, as the record of its trial says it."""
    view = cast("Mapping[str, object]", trial).get("view") if isinstance(trial, Mapping) else None
    return str(cast("Mapping[str, object]", view).get("output", "")) if isinstance(view, Mapping) else ""


def _verdict(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> None:
    if envelope.sender is Role.META_VALIDATOR:
        if task.round is not None:
            _keep(task.round.judged, judged.verdict)
    elif judged.subtask_id is not None:
        _keep(_subtask(task, judged.subtask_id).judged[judged.attempt], judged.verdict)


def _fast(task: TaskNotes, payload: SubTask | ExecutionResult | CorrectionSignal | SubTaskOutcome) -> None:
    notes = _subtask(task, payload.subtask_id)
    match payload:
        case SubTask():
            notes.subtask = payload
            notes.steps += len(payload.first_calls)
        case ExecutionResult():
            _keep(notes.results, payload)
        case CorrectionSignal():
            _keep(notes.corrections, payload)
        case SubTaskOutcome():
            notes.outcome = payload
            notes.said.clear()
            notes.judge_said.clear()


def _decided(task: TaskNotes, decided: Decided, envelope: Envelope) -> None:
    task.decided.append((decided, envelope.cause_id))
    request = task.replans.get(envelope.cause_id or "")
    stopped = request is not None and request.stopped_by is not None
    if stopped or not (request is not None or task.cause_kind(envelope) == "PlanRefused"):
        return
    ruled = control.ruling(task.law, control.Terms(*_terms(decided)), decided.grad_l, request, task.worsening)
    task.worsening = ruled.worsening


def _terms(decided: Decided) -> tuple[float, float, float]:
    return decided.loss.D, decided.loss.P, decided.loss.Omega


def _consent(task: TaskNotes, payload: ConfirmationRequest | ConfirmationAnswer, envelope: Envelope) -> None:
    consent = task.consent
    if isinstance(payload, ConfirmationRequest):
        consent.asked[envelope.id] = payload
        return
    request = consent.asked.get(envelope.cause_id or "")
    consent.answered.setdefault(envelope.cause_id or "", payload)
    for act in request.acts if request is not None else ():
        if not payload.consent.is_yes:
            consent.refused[act.verb, act.target] = payload.by
        else:
            consent.refused.pop((act.verb, act.target), None)


def _opened(task: TaskNotes, opened: TaskOpened) -> None:
    task.law = law_of(opened)
    task.tuned = {slug: law_of(opened.for_type(slug)) for slug in opened.tuned}
    budget = opened.hyperparameters.get("time_budget_ms")
    task.budget_ms = float(budget) if isinstance(budget, (int, float)) else None


def law_of(opened: TaskOpened) -> Law:
    """The law that a task was opened under."""
    given: Mapping[str, float | int | str] = opened.hyperparameters
    numbers = {name: value for name, value in given.items() if name in _LAW_NAMES and not isinstance(value, str)}
    if opened.brain.small and "unplanned" not in opened.without:
        numbers["max_replans"] = 0  # nobody plans, so nobody plans again
    return Law(
        **numbers,  # pyright: ignore[reportArgumentType]
        paper_gradient=given.get("gradient") == "paper",
        most_calls=opened.max_calls,
        most_tokens=opened.max_tokens,
    )


def _deadline(task: TaskNotes, plan: Plan) -> None:
    """A deadline caps the time budget; it counts from the request, whose time the Auditor does not keep."""
    if plan.deadline is not None:
        task.budget_ms = None
