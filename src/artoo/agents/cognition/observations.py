"""Summarise a finished task in one sentence to remember, with its length, from the request and the result."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.cognition.similarity import general, one_line
from artoo.contracts.solution import Directive, FinalResult, StoppedBy

ASKED, REASON, WHOLE = 160, 160, 600
"""Maximum numbers of characters of the request, of each reason, and of an observation."""
DONE = "done"
_MOST = 3


@dataclass(frozen=True, slots=True)
class Noted:
    """A note: `text` for people and prompts. `pattern` (ending|asked|why) is equal for equal outcomes."""

    text: str
    pattern: str


def observation_of(request: str, result: FinalResult) -> Noted | None:
    """Return the note on a task, or None if its ending teaches nothing.

    The output is not included, because it is in the task's log. Text from the request or a tool stays in quotes. A
    missing input is noted, because the note names the missing input.
    """
    why = result.stopped_by
    if why is not None and not why.teaches and why is not StoppedBy.MISSING_INPUT:
        return None
    asked = one_line(request, ASKED)
    ending = _ending(result)
    reasons = _reasons(result)
    told = f'"{asked}": {ending}{_told(reasons)}'
    because = "" if ending == DONE else general(" ".join(reasons))
    return Noted(one_line(told, WHOLE), "|".join((ending, general(asked).replace("|", " "), because)))


def asked_in(observation: str) -> str:
    """Return the request from an observation of `observation_of`. A text of another form is returned whole."""
    asked, quote, _ = observation.removeprefix('"').partition('": ')
    return asked if quote and observation.startswith('"') else observation


def _ending(result: FinalResult) -> str:
    if result.directive is Directive.ABANDON:
        why = result.stopped_by.value if result.stopped_by is not None else "not met"
        return f"given up ({why})"
    return "partly done" if result.unmet or result.withheld else DONE


def _reasons(result: FinalResult) -> tuple[str, ...]:
    """Return the failures with their reasons and the withheld operations. Without these, return how it was done."""
    failed = [f"{each.criterion}: {each.reason}" if each.reason else each.criterion for each in result.unmet]
    failed += [f"withheld: {act}" for act in result.withheld]
    chosen = failed or ([] if result.directive is Directive.ABANDON else list(result.done))
    return tuple(one_line(reason, REASON) for reason in chosen[:_MOST])


def _told(reasons: tuple[str, ...]) -> str:
    return f" — {'; '.join(reasons)}" if reasons else ""
