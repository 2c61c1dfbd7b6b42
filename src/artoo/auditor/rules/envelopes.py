"""Who speaks, in answer to what, and when: what can be told from the header of a message."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, ModelCalled, RouteViolation
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, ExecutionResult, SubTaskOutcome, ToolCalled
from artoo.contracts.plan import DispatchManifest, SubTask
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES, may_follow
from artoo.contracts.solution import FinalResult, OutcomeSummary, PlanDirective, ReplanRequest, RoleFailure

_BACKWARDS = timedelta(milliseconds=50)
"""How far a time stamp may lie before the last one: a clock that is being disciplined, not one that was set."""

_MAY = {kind: frozenset(route.senders) for kind, route in ROUTES.items()}
_CAUSES = {kind: route.causes for kind, route in ROUTES.items()}
_NOBODY: frozenset[Role] = frozenset()
_MEDIUM = (DispatchManifest, OutcomeSummary, ReplanRequest, PlanDirective, FinalResult)
_NAMES_ITS_TASK = frozenset(each.__name__ for each in _MEDIUM)
_ROLES_OF_A_TASK = frozenset(
    {Role.PERCEIVER, Role.PLANNER, Role.DISPATCHER, Role.EXECUTOR, Role.AGENT_VALIDATOR, Role.META_VALIDATOR,
     Role.SOLVER}
)  # fmt: skip


def unremarkable(task: TaskNotes, envelope: Envelope) -> bool:
    """True when none of the rules for every message can have anything to say: one look instead of nine."""
    kind, known = envelope.kind, task.kinds
    senders = _MAY.get(kind)
    if senders is None or envelope.sender not in senders or envelope.id in known or envelope.id in task.dangling:
        return False
    before, cause, allowed = task.latest, envelope.cause_id, _CAUSES[kind]
    if before is None or envelope.at < before.at or (kind in _NAMES_ITS_TASK and _elsewhere(envelope)):
        return False
    if cause is None:
        return not allowed
    answered = known.get(cause)
    return answered is not None and answered[0] == envelope.task_id and (allowed is None or answered[1] in allowed)


def _elsewhere(envelope: Envelope) -> bool:
    payload = envelope.payload
    return isinstance(payload, _MEDIUM) and payload.task_id != envelope.task_id


@on(Contract, whole=False)
def wrong_sender(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message of a kind that its sender may not say: it did not come through the sender's own port."""
    kind = type(payload).__name__
    if envelope.sender not in _MAY.get(kind, _NOBODY):
        may = ", ".join(sorted(_MAY.get(kind, _NOBODY))) or "nobody"
        yield f"{envelope.sender} said {kind}, which only {may} may say"


@on(Contract, whole=False)
def duplicate_id(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Two messages with one id: the second is a copy or a forgery."""
    if envelope.id in task.kinds:
        _, kind = task.kinds[envelope.id]
        yield f"the id of this {type(payload).__name__} was that of a {kind} before"


@on(Contract, whole=False)
def unknown_cause(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message that answers one which was never on the bus."""
    cause = envelope.cause_id
    if cause is not None and cause not in task.kinds and not task.partial:
        yield f"this {type(payload).__name__} answers {cause}, which was never on the stream"


@on(Contract, whole=False)
def cause_from_the_future(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message that was answered before it was there."""
    if envelope.id in task.dangling:
        yield f"this {type(payload).__name__} was answered before it was on the stream"


@on(Contract, whole=False)
def cause_of_another_task(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message that answers one of another task."""
    known = task.kinds.get(envelope.cause_id) if envelope.cause_id is not None else None
    if known is not None and known[0] != envelope.task_id:
        yield f"this {type(payload).__name__} answers a {known[1]} of task {known[0]}"


@on(Contract, whole=False)
def wrong_cause(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message whose kind may not follow the kind that it answers."""
    kind = type(payload).__name__
    cause = task.cause_kind(envelope)
    allowed = _CAUSES.get(kind)
    if allowed is None or may_follow(kind, cause):
        return
    if envelope.cause_id is None:
        yield f"{kind} answers nothing, though it must answer {_listed(allowed)}"
    elif cause is not None:
        yield f"{kind} answers a {cause}; it may answer {_listed(allowed) or 'nothing'}"


def _listed(kinds: frozenset[str]) -> str:
    return ", ".join(sorted(kinds))


@on(Contract, nature="anomaly", whole=False)
def clock_backwards(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message with a time before that of the message before it."""
    before = task.latest
    if before is not None and envelope.at < before.at - _BACKWARDS:
        back = (before.at - envelope.at).total_seconds()
        yield f"the clock went back by {back:.3f} s between a {before.kind} and this {type(payload).__name__}"


@on(Contract, whole=False)
def no_beginning(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A role works on a task that nobody has asked for."""
    if task.seen == 0 and envelope.sender in _ROLES_OF_A_TASK and not isinstance(payload, RoleFailure):
        yield f"the first message of this task is a {type(payload).__name__} of the {envelope.sender}"


@on(UserRequest, whole=False)
def second_request(task: TaskNotes, request: UserRequest, envelope: Envelope) -> Iterator[str]:
    """A task that is asked for twice."""
    if task.request is not None:
        yield "a second UserRequest in one task"


@on(RouteViolation, whole=False)
def route_refused(task: TaskNotes, violation: RouteViolation, envelope: Envelope) -> Iterator[str]:
    """A role tried to say what it may not; its port refused."""
    yield f"{violation.offender} tried to say {violation.refused_kind}: {violation.reason}"


@on(MessagesDropped, nature="loss", whole=False)
def messages_dropped(task: TaskNotes, drops: MessagesDropped, envelope: Envelope) -> Iterator[str]:
    """A slow subscriber missed messages."""
    yield f"{drops.subscriber} missed {drops.count} messages"


def _misplaced(envelope: Envelope, named: str | None) -> Iterator[str]:
    if named != envelope.subtask_id:
        yield f"this {envelope.kind} speaks of subtask {named} on the port of subtask {envelope.subtask_id}"


@on(SubTask, whole=False)
def misaddressed_subtask(task: TaskNotes, subtask: SubTask, envelope: Envelope) -> Iterator[str]:
    """A SubTask for another subtask or task than its envelope says."""
    yield from _misplaced(envelope, subtask.subtask_id)
    if subtask.parent_task_id != envelope.task_id:
        yield f"this SubTask belongs to task {subtask.parent_task_id}"


@on(ExecutionResult, whole=False)
def misaddressed_result(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """A result under the name of another subtask."""
    yield from _misplaced(envelope, result.subtask_id)


@on(ToolCalled, whole=False)
def misaddressed_call(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A tool call under the name of another subtask."""
    yield from _misplaced(envelope, called.subtask_id)


@on(CriterionJudged, whole=False)
def misaddressed_verdict(task: TaskNotes, judged: CriterionJudged, envelope: Envelope) -> Iterator[str]:
    """A verdict under the name of another subtask; R4b's verdicts have none."""
    if envelope.sender is Role.META_VALIDATOR and judged.subtask_id is None:
        return
    yield from _misplaced(envelope, judged.subtask_id)


@on(CorrectionSignal, whole=False)
def misaddressed_correction(task: TaskNotes, signal: CorrectionSignal, envelope: Envelope) -> Iterator[str]:
    """A correction for another subtask."""
    yield from _misplaced(envelope, signal.subtask_id)


@on(SubTaskOutcome, whole=False)
def misaddressed_outcome(task: TaskNotes, outcome: SubTaskOutcome, envelope: Envelope) -> Iterator[str]:
    """An outcome under the name of another subtask or task."""
    yield from _misplaced(envelope, outcome.subtask_id)
    if outcome.parent_task_id != envelope.task_id:
        yield f"this SubTaskOutcome belongs to task {outcome.parent_task_id}"


@on(Contract, whole=False)
def misaddressed_task(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """A message of the medium loop under the name of another task."""
    if isinstance(payload, _MEDIUM) and payload.task_id != envelope.task_id:
        yield f"this {envelope.kind} speaks of task {payload.task_id}"


@on(ModelCalled, whole=False)
def borrowed_role(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """A model call in the name of another role."""
    if called.role is not envelope.sender:
        yield f"the {envelope.sender} recorded a model call of the {called.role}"


@on(RoleFailure, whole=False)
def borrowed_failure(task: TaskNotes, failure: RoleFailure, envelope: Envelope) -> Iterator[str]:
    """A failure in the name of another role."""
    if failure.role is not envelope.sender:
        yield f"the {envelope.sender} reported a failure of the {failure.role}"


RULES: tuple[Rule, ...] = (
    wrong_sender,
    duplicate_id,
    unknown_cause,
    cause_from_the_future,
    cause_of_another_task,
    wrong_cause,
    clock_backwards,
    no_beginning,
    second_request,
    route_refused,
    messages_dropped,
    misaddressed_subtask,
    misaddressed_result,
    misaddressed_call,
    misaddressed_verdict,
    misaddressed_correction,
    misaddressed_outcome,
    misaddressed_task,
    borrowed_role,
    borrowed_failure,
)
