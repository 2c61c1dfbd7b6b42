"""The end of a task's workspace: settled before the result, as was agreed to, and told as it was."""

from __future__ import annotations

from collections.abc import Iterator

from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.confirmation import PERSON, POLICY, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.settling import ChangeClass, Ending, Settled
from artoo.contracts.solution import FinalResult


def _answers(task: TaskNotes) -> Iterator[tuple[ConfirmationRequest, ConfirmationAnswer]]:
    """What was said to the reviews of this task."""
    for cause, answer in task.consent.answered.items():
        request = task.consent.asked.get(cause)
        if request is not None and request.review is not None:
            yield request, answer


@on(Ending)
def ending_undecided(task: TaskNotes, ending: Ending, envelope: Envelope) -> Iterator[str]:
    """A task that ends otherwise than was decided, or a second time without having been interrupted."""
    if task.ending is not None:
        if ending.may_ask or task.cause_kind(envelope) != "Interrupt":
            yield "the task was ending before"
        return
    decided = [each.directive.value for each, cause in task.decided if cause == envelope.cause_id]
    if decided and decided[-1] != ending.directive:
        yield f"the decision is {decided[-1]}; the task ends with {ending.directive}"


@on(Settled)
def applied_without_consent(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """Changes that need consent took effect, and nobody has said yes to this difference."""
    if settled.state not in ("applied", "partly"):
        return
    loud = [each for each in settled.counts if each.change_class is not ChangeClass.SILENT]
    unfinished = task.ending is not None and task.ending.directive == "abandon"
    if not loud and not unfinished and settled.state == "applied":
        return
    agreed = [(request, answer) for request, answer in _answers(task) if answer.consent.is_yes]
    if settled.state == "applied":
        agreed = [(request, answer) for request, answer in agreed if request.digest == settled.digest]
    if not agreed:
        what = ", ".join(f"{each.count} {each.change_class}" for each in loud) or "an unfinished task"
        yield f"{what} took effect, and nobody agreed to it"


@on(Settled)
def part_without_a_person(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """A part of a difference took effect, or more of it than was chosen, or an unfinished task's by a policy."""
    said = [answer for _, answer in _answers(task) if answer.consent.is_yes]
    unfinished = task.ending is not None and task.ending.directive == "abandon"
    by_policy = any(answer.by.startswith(POLICY) for answer in said)
    if settled.state in ("applied", "partly") and unfinished and by_policy:
        yield "a standing permission agreed to what an abandoned task had changed"
    if settled.state == "partly" and not any(answer.by == PERSON for answer in said):
        yield "a part of the difference took effect, and no person has chosen it"


@on(Settled)
def discarded_unasked(task: TaskNotes, settled: Settled, envelope: Envelope) -> Iterator[str]:
    """What a task has changed was thrown away, and no person has said so."""
    asked = (answer for _, answer in _answers(task) if answer.by == PERSON)
    if settled.state == "discarded" and not any(answer.consent is Consent.DISCARD for answer in asked):
        yield "the task's changes were discarded, and no person has said so"


@on(FinalResult)
def ended_unsettled(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """A result before the gate had settled what the task changed, or one that tells otherwise than the gate."""
    if task.settled is None:
        yield "the task ended before the gate had settled what it changed"
    elif result.changes != task.settled:
        yield f"the gate said {task.settled.state}; the result says {result.changes.state}, or of other changes"


RULES: tuple[Rule, ...] = (
    ending_undecided,
    applied_without_consent,
    part_without_a_person,
    discarded_unasked,
    ended_unsettled,
)
