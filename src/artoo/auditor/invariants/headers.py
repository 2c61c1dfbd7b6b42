"""Invariants on a message's sender, id, cause and time, with the tolerated step of a clock backwards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from artoo.auditor.invariants.invariant import on
from artoo.auditor.notes import TaskNotes
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, RouteViolation
from artoo.contracts.execution import ToolCalled
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES, may_follow
from artoo.contracts.solution import RoleFailure

_BACKWARDS = timedelta(milliseconds=50)
"""Maximum time by which a message may have an earlier time stamp than the one before. Regular adjustments of a
clock are smaller, and a clock that was set back differs by more."""

_MAY = {kind: route.senders for kind, route in ROUTES.items()}
_CAUSES = {kind: route.causes for kind, route in ROUTES.items()}
_NOBODY: frozenset[Role] = frozenset()
_ROLES_OF_A_TASK = frozenset(
    {Role.PERCEIVER, Role.PLANNER, Role.DISPATCHER, Role.EXECUTOR, Role.AGENT_VALIDATOR, Role.META_VALIDATOR,
     Role.SOLVER}
)  # fmt: skip


@on(Contract, whole=False)
def wrong_sender(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a kind of message that its sender may not publish. Such a message did not come through the port of the
    sender."""
    may = _MAY.get(envelope.kind, _NOBODY)
    if envelope.sender not in may:
        yield f"{envelope.sender} said {envelope.kind}, which only {', '.join(sorted(may)) or 'nobody'} may say"


@on(Contract, whole=False)
def duplicate_id(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a second message with the same id, which is a copy or a forgery."""
    if envelope.id in task.kinds:
        yield f"the id of this {envelope.kind} was that of a {task.kinds[envelope.id]} before"


@on(Contract, whole=False)
def unknown_cause(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a message whose cause was never on the stream, or belongs to another task."""
    cause = envelope.cause_id
    if cause is not None and cause not in task.kinds and not task.partial:
        yield f"this {envelope.kind} answers {cause}, which this task has never said"


@on(Contract, whole=False)
def cause_from_the_future(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a message that another message named as its cause before it was on the stream itself."""
    if envelope.id in task.dangling:
        yield f"this {envelope.kind} was answered before it was on the stream"


@on(Contract, whole=False)
def wrong_cause(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a message that, by its kind, may not follow its cause."""
    kind, cause = envelope.kind, task.cause_kind(envelope)
    allowed = _CAUSES.get(kind)
    if allowed is None or may_follow(kind, cause):
        return
    listed = ", ".join(sorted(allowed))
    if envelope.cause_id is None:
        yield f"{kind} answers nothing, though it must answer {listed}"
    elif cause is not None:
        yield f"{kind} answers a {cause}; it may answer {listed or 'nothing'}"


@on(Contract, nature="anomaly", whole=False)
def clock_backwards(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a time stamp that is earlier than that of the previous message."""
    before = task.latest
    if before is not None and envelope.at < before.at - _BACKWARDS:
        back = (before.at - envelope.at).total_seconds()
        yield f"the clock went back by {back:.3f} s between a {before.kind} and this {envelope.kind}"


@on(Contract, whole=False)
def no_beginning(task: TaskNotes, payload: Contract, envelope: Envelope) -> Iterator[str]:
    """Report a message of a role in a task that no user has requested."""
    if task.seen == 0 and envelope.sender in _ROLES_OF_A_TASK and not isinstance(payload, RoleFailure):
        yield f"the first message of this task is a {envelope.kind} of the {envelope.sender}"


@on(RouteViolation, whole=False)
def route_refused(task: TaskNotes, violation: RouteViolation, envelope: Envelope) -> Iterator[str]:
    """Report that the port of a role has refused a message which the role may not publish."""
    yield f"{violation.offender} tried to say {violation.refused_kind}: {violation.reason}"


@on(MessagesDropped, nature="loss", whole=False)
def messages_dropped(task: TaskNotes, drops: MessagesDropped, envelope: Envelope) -> Iterator[str]:
    """Report that a slow subscriber missed messages."""
    yield f"{drops.subscriber} missed {drops.count} messages"


@on(ToolCalled)
def call_after_result(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """Report a call that was recorded after the result of its attempt."""
    if (called.subtask_id, called.attempt) in task.attempts_ended:
        yield f"a call of {called.call.tool} is recorded after the result of attempt {called.attempt}"
