"""Invariants on budget overruns, the cost stated in the result, and the prompts of each model call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import get_args

from artoo.auditor.invariants.invariant import on
from artoo.auditor.notes import TaskNotes, tokens_of
from artoo.contracts.conversation import Said
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.prompts.library import Form, procedural
from artoo.prompts.segments import assemble, assemble_shared


@on(ModelCalled)
def calls_overshot(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """Report model calls that exceed the budget by more than one."""
    limit, used = task.most_calls, task.spending.calls + called.billed
    if limit is not None and task.spending.calls <= limit + 1 < used:
        yield f"{used} model calls on a budget of {limit}"


@on(ModelCalled)
def tokens_overshot(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """Report tokens that exceed the budget by more than one call."""
    limit, used = task.most_tokens, task.spending.tokens
    if limit is not None and used >= limit and task.spending.beyond == 1 and tokens_of(called):
        yield f"a second model call with {used} tokens used on a budget of {limit}"


@on(FinalResult)
def cost_understated(task: TaskNotes, result: FinalResult, envelope: Envelope) -> Iterator[str]:
    """Report a result that states a lower cost than the stream shows, or more tool calls."""
    cost, spent = result.cost, task.spending
    if cost.llm_calls < spent.answered:
        yield f"{spent.answered} model calls were answered; the result says {cost.llm_calls}"
    tokens = cost.prompt_tokens + cost.completion_tokens
    if tokens < spent.answered_tokens:
        yield f"{spent.answered_tokens} tokens were used; the result says {tokens}"
    if cost.tool_calls > spent.tools:
        yield f"{spent.tools} tools were called; the result says {cost.tool_calls}"


@on(ModelCalled, whole=False)
def prompt_changed(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """Report a model call whose identity, laws, role or contract text differs from the manifest."""
    try:
        # A second approach is always requested with the executor's prompt, whichever role asks.
        speaker = Role.EXECUTOR if called.contract == "ExecutorStep" else called.role
        due = tuple(_procedural(speaker.value, called.contract, form) for form in get_args(Form))
    except ConfigurationError as error:
        yield str(error)
        return
    except KeyError as error:
        yield f"the {called.role} has no prompt for {called.contract} ({error})"
        return
    # A conversation contains these texts in its first call only.
    continued = not (called.system or called.user)
    first = called.user or next((each.text for each in called.added if isinstance(each, Said)), "")
    stated = (called.system.startswith(alone) or _holds(called.system, first, own) for alone, own in due)
    if not continued and not any(stated):
        yield f"the prompt of the {called.role} for {called.contract} is not the one in the manifest"


def _holds(system: str, user: str, own: tuple[str, str]) -> bool:
    """Check whether a prompt has the text common to all roles, names the contract, and has the role's own text."""
    common, _, line = own[0].rpartition("\n\n")
    names_contract = f"\n\n{line}\n" in f"{system}\n"
    return system.startswith(common) and names_contract and f"\n\n{own[1]}\n" in f"\n\n{user}\n"


@cache
def _procedural(role: str, contract: str, form: Form) -> tuple[str, tuple[str, str]]:
    """Return the start of the system message with the role's text, and both messages with shared text
    (`segments`)."""
    parts = procedural(role, contract, form)
    return assemble(parts)[0], assemble_shared(parts)
