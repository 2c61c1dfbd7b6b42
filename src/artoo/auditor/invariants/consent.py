"""Invariants on approval before effect, for questions, answers, refusals and operations that took effect."""

from __future__ import annotations

from collections.abc import Iterator

from artoo.auditor.invariants.invariant import on
from artoo.auditor.notes import TaskNotes
from artoo.contracts.confirmation import NOBODY, PERSON, POLICY, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import CallStatus, ToolCalled
from artoo.contracts.settling import ChangeClass, Settled
from artoo.contracts.solution import FinalResult


def _reviews(task: TaskNotes) -> Iterator[tuple[ConfirmationRequest, ConfirmationAnswer]]:
    """Yield the reviews of this task's changes, with their answers."""
    for cause, answer in task.answered.items():
        request = task.asked.get(cause)
        if request is not None and request.review is not None:
            yield request, answer


@on(ConfirmationAnswer)
def answer_unasked(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """Report an answer to a question that was not asked, or an answer about another operation than that of its
    question."""
    request = task.asked.get(envelope.cause_id or "")
    if request is None:
        yield f"an answer to no question (digest {answer.digest[:12]})"
    elif request.digest != answer.digest:
        yield f"asked about {request.digest[:12]}, answered for {answer.digest[:12]}"


@on(ConfirmationAnswer)
def answered_twice(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """Report a second answer to one question."""
    if envelope.cause_id in task.answered:
        yield f"the question about {answer.digest[:12]} was answered before"


@on(ConfirmationAnswer)
def consent_by_nobody(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """Report an approval that neither a user nor a policy gave."""
    if answer.by in (NOBODY, "") and answer.consent.is_yes:
        yield f"nobody said yes to {answer.digest[:12]}"


@on(ConfirmationRequest)
def asked_again(task: TaskNotes, request: ConfirmationRequest, envelope: Envelope) -> Iterator[str]:
    """Report that a question was asked again after a person had refused. A refusal is valid for the whole task."""
    for cause, earlier in task.answered.items():
        asked = task.asked.get(cause)
        refused = not earlier.consent.is_yes and earlier.by == PERSON
        if refused and asked is not None and asked.digest == request.digest:
            yield f"{request.title!r} was refused before, and is asked again"
            return


@on(ToolCalled)
def act_without_consent(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """Report an operation that was performed although it was refused."""
    call = called.call
    done = set(call.changes)
    if call.status is CallStatus.OK:
        done |= {f"{identity} {call.target}".strip() for identity in call.identity}
    for (verb, target), by in task.refused.items():
        if target in done:
            yield f"{verb} {target} was done, though {by} said no"


@on(ToolCalled)
def withheld_unasked(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """Report a call that is recorded as withheld by a person although no person has refused anything."""
    if called.call.withheld_by == "person" and "person" not in task.refused.values():
        yield f"{called.call.tool} was withheld by a person, and no person has refused anything"


@on(NetworkUsed)
def reached_without_consent(task: TaskNotes, used: NetworkUsed, envelope: Envelope) -> Iterator[str]:
    """Report bytes that were sent to a host and port for which no question was approved."""
    name = f"[{used.host}]:{used.port}" if ":" in used.host else f"{used.host}:{used.port}"
    agreed = (task.asked.get(cause) for cause, answer in task.answered.items() if answer.consent.is_yes)
    reached = {act.target for asked in agreed if asked is not None for act in asked.acts if act.verb == "network"}
    if used.bytes_out and name not in reached:
        yield f"{used.bytes_out} bytes went to {name}, which nobody agreed to"


@on(Settled)
def applied_without_consent(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """Report changes that needed approval and were applied without an approval of exactly these changes."""
    if settled.state not in ("applied", "partly"):
        return
    loud = [each for each in settled.counts if each.change_class is not ChangeClass.SILENT]
    if not loud and not task.abandoning and settled.state == "applied":
        return
    agreed = [request for request, answer in _reviews(task) if answer.consent.is_yes]
    if settled.state == "applied":
        agreed = [request for request in agreed if request.digest == settled.digest]
    if not agreed:
        what = ", ".join(f"{each.count} {each.change_class}" for each in loud) or "an unfinished task"
        yield f"{what} took effect, and nobody agreed to it"


@on(Settled)
def part_without_a_person(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """Report that a part of the changes was applied although no person chose it, or that a policy applied the
    changes of an abandoned task."""
    said = [answer for _, answer in _reviews(task) if answer.consent.is_yes]
    by_policy = any(answer.by.startswith(POLICY) for answer in said)
    if settled.state in ("applied", "partly") and task.abandoning and by_policy:
        yield "a standing permission agreed to what an abandoned task had changed"
    if settled.state == "partly" and not any(answer.by == PERSON for answer in said):
        yield "a part of the difference took effect, and no person has chosen it"


@on(Settled)
def discarded_unasked(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """Report changes that were discarded without a person's decision."""
    asked = (answer for _, answer in _reviews(task) if answer.by == PERSON)
    if settled.state == "discarded" and not any(answer.consent is Consent.DISCARD for answer in asked):
        yield "the task's changes were discarded, and no person has said so"


@on(FinalResult)
def ended_unsettled(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """Report a result that was published before the gate had settled the changes, or that has other changes than
    the gate settled."""
    if task.settled is None:
        yield "the task ended before the gate had settled what it changed"
    elif result.changes != task.settled:
        yield f"the gate said {task.settled.state}; the result says {result.changes.state}, or of other changes"
