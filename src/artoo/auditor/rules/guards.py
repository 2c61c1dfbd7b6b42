"""The Laws' guards: consent, budgets, prompts and memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import get_args

from artoo.auditor.notes import TaskNotes
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.confirmation import NOBODY, PERSON, ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CallStatus, ToolCalled
from artoo.contracts.memory import MegramState, MemoryWritten
from artoo.contracts.network import NetworkUsed
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult
from artoo.prompts.library import Form, procedural
from artoo.prompts.segments import assemble

_WORTH: dict[MegramState, tuple[float, float, float]] = {
    MegramState.ABANDON: (0.95, -1.0, 0.05),
    MegramState.ACCEPT: (0.90, 1.0, 0.05),
    MegramState.CHANGE_APPROACH: (0.85, -1.0, 0.05),
    MegramState.SUCCESS: (0.80, 1.0, 0.05),
    MegramState.CHANGE_PATH: (0.30, 0.0, 0.2),
    MegramState.REFINE: (0.10, 0.5, 0.5),
    MegramState.SUSPICION: (0.30, 0.0, 0.05),
}
"""f, σ and k of what a decision teaches (SPEC section 5)."""

_BREAK = ((0.75, 1.0, 0.05), (0.85, -1.0, 0.05))
"""break_symmetry credits what then matched, and blames what failed as change_approach does."""

_ANY_TIME = (MegramState.FEEDBACK, MegramState.DISSONANCE)
_OF_DREAMS = (MegramState.CONSOLIDATED, MegramState.HYPOTHESIS)


# --- consent ----------------------------------------------------------------------------------------------------


@on(ConfirmationAnswer)
def answer_unasked(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """An answer with a digest that nobody asked about, or about another act than the question that it answers."""
    request = task.consent.asked.get(envelope.cause_id or "")
    if request is None:
        yield f"an answer to no question (digest {answer.digest[:12]})"
    elif request.digest != answer.digest:
        yield f"asked about {request.digest[:12]}, answered for {answer.digest[:12]}"


@on(ConfirmationAnswer)
def answered_twice(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """A second answer to one question."""
    if envelope.cause_id in task.consent.answered:
        yield f"the question about {answer.digest[:12]} was answered before"


@on(ConfirmationAnswer)
def consent_by_nobody(task: TaskNotes, answer: ConfirmationAnswer, envelope: Envelope) -> Iterator[str]:
    """A yes where nobody was there to give it."""
    if answer.by in (NOBODY, "") and answer.consent.is_yes:
        yield f"nobody said yes to {answer.digest[:12]}"


@on(ConfirmationRequest)
def asked_again(task: TaskNotes, request: ConfirmationRequest, envelope: Envelope) -> Iterator[str]:
    """A question about exactly what a person has refused: a no holds for the task."""
    for cause, earlier in task.consent.answered.items():
        asked = task.consent.asked.get(cause)
        refused = not earlier.consent.is_yes and earlier.by == PERSON
        if refused and asked is not None and asked.digest == request.digest:
            yield f"{request.title!r} was refused before, and is asked again"
            return


@on(ToolCalled)
def act_without_consent(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """Something was done that was asked about and refused."""
    call = called.call
    done = set(call.changes)
    if call.status is CallStatus.OK:
        done |= {f"{identity} {call.target}".strip() for identity in call.identity}
    for (verb, target), by in task.consent.refused.items():
        if target in done:
            yield f"{verb} {target} was done, though {by} said no"


@on(ToolCalled)
def withheld_unasked(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A call that was withheld by a person who has said no to nothing."""
    if called.call.withheld_by == "person" and "person" not in task.consent.refused.values():
        yield f"{called.call.tool} was withheld by a person, and no person has refused anything"


@on(NetworkUsed)
def reached_without_consent(task: TaskNotes, used: NetworkUsed, envelope: Envelope) -> Iterator[str]:
    """Something went out to a host and port that no answered question agreed to."""
    name = f"[{used.host}]:{used.port}" if ":" in used.host else f"{used.host}:{used.port}"
    answers = task.consent.answered.items()
    agreed = (task.consent.asked.get(cause) for cause, answer in answers if answer.consent.is_yes)
    reached = {act.target for asked in agreed if asked is not None for act in asked.acts if act.verb == "network"}
    if used.bytes_out and name not in reached:
        yield f"{used.bytes_out} bytes went to {name}, which nobody agreed to"


# --- budgets ----------------------------------------------------------------------------------------------------


@on(ModelCalled)
def calls_overshot(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """More model calls than the budget has, by more than one."""
    limit, used = task.law.most_calls, task.spending.calls + called.billed
    if limit is not None and task.spending.calls <= limit + 1 < used:
        yield f"{used} model calls on a budget of {limit}"


@on(ModelCalled)
def tokens_overshot(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """More tokens than the budget has, by more than one call."""
    limit, used = task.law.most_tokens, task.spending.tokens
    if limit is not None and used >= limit and task.spending.beyond == 1 and tokens_of(called):
        yield f"a second model call with {used} tokens used on a budget of {limit}"


def tokens_of(called: ModelCalled) -> int:
    """What a call used, prompt and answer together."""
    return called.usage.prompt_tokens + called.usage.completion_tokens


# --- prompts ----------------------------------------------------------------------------------------------------


@on(ModelCalled, whole=False)
def prompt_changed(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """A model that was asked with other identity, laws, role or contract than those that ship with artoo."""
    try:
        # A second way is asked for in the executor's words, whoever asks for it.
        speaker = Role.EXECUTOR if called.contract == "ExecutorStep" else called.role
        due = tuple(_procedural(speaker.value, called.contract, form) for form in get_args(Form))
    except ConfigurationError as error:
        yield str(error)
        return
    except KeyError as error:
        yield f"the {called.role} has no prompt for {called.contract} ({error})"
        return
    continued = not (called.system or called.user)  # a conversation names it at its first call
    if not continued and not called.system.startswith(due):
        yield f"the system prompt of the {called.role} for {called.contract} is not the one in the manifest"


@cache
def _procedural(role: str, contract: str, form: Form) -> str:
    return assemble(procedural(role, contract, form))[0]


# --- memory -----------------------------------------------------------------------------------------------------


@on(MemoryWritten)
def memory_without_decision(task: TaskNotes, written: MemoryWritten, envelope: Envelope) -> Iterator[str]:
    """R7 remembers what it has not decided."""
    if envelope.sender is not Role.SOLVER or written.state in _ANY_TIME:
        return
    decided = task.decided[-1][0].directive.value if task.decided else None
    obeyed = task.directives[-1].directive if task.directives else None
    due = {decided, *(["found"] if decided in ("accept", "success") else [])}
    due |= {"break_symmetry"} if obeyed is Directive.BREAK_SYMMETRY and decided is not None else set()
    due |= {"suspicion"} if task.decided and task.decided[-1][0].suspicious else set()
    if written.state.value not in due:
        yield f"a megram of {written.state} after the decision {decided or 'of nobody'}"


@on(MemoryWritten, whole=False)
def memory_value_differs(task: TaskNotes, written: MemoryWritten, envelope: Envelope) -> Iterator[str]:
    """A megram that is worth more or less than its state is."""
    worth = (written.f, written.sigma, written.k)
    known = _BREAK if written.state is MegramState.BREAK_SYMMETRY else (_WORTH.get(written.state, worth),)
    if worth not in known:
        yield f"a megram of {written.state} with f, σ, k = {worth}; it is worth {known[0]}"


@on(MemoryWritten, whole=False)
def dream_in_a_task(task: TaskNotes, written: MemoryWritten, envelope: Envelope) -> Iterator[str]:
    """A rule or a guess that R7 writes: those come from the Dreamer alone, outside of every task."""
    if envelope.sender is Role.SOLVER and written.state in _OF_DREAMS:
        yield f"R7 wrote a megram of {written.state}"


@on(FinalResult)
def taught_by_nothing(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """A task that ended for lack of a model or of an answer, or was interrupted, and is remembered as failed."""
    if result.stopped_by is not None and not result.stopped_by.teaches and MegramState.ABANDON in task.taught:
        yield f"stopped by {result.stopped_by}, and remembered as abandoned"


RULES: tuple[Rule, ...] = (
    answer_unasked,
    answered_twice,
    consent_by_nobody,
    asked_again,
    act_without_consent,
    withheld_unasked,
    reached_without_consent,
    calls_overshot,
    tokens_overshot,
    prompt_changed,
    memory_without_decision,
    memory_value_differs,
    dream_in_a_task,
    taught_by_nothing,
)
