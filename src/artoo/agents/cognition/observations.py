"""Make one sentence of a finished task to remember, by code, from the request and the result."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.cognition.similarity import general, one_line
from artoo.contracts.solution import Directive, FinalResult, StoppedBy

ASKED, REASON, WHOLE = 160, 160, 600
"""Characters kept of the request, of each reason, and of an observation."""
DONE = "done"
_MOST = 3


@dataclass(frozen=True, slots=True)
class Noted:
    """A note: `text` for people and prompts; `pattern` (ending|asked|why) is equal when the same happened again."""

    text: str
    pattern: str


def observation_of(request: str, result: FinalResult) -> Noted | None:
    """Return the note of a task, or None when the ending teaches nothing.

    Not the output: that is in the task's log. What is quoted from the request or a tool stays in quotes. What was
    not there is noted, for the note says what it was.
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
    """Return the request in an observation of `observation_of`; all of a text of another form."""
    asked, quote, _ = observation.removeprefix('"').partition('": ')
    return asked if quote and observation.startswith('"') else observation


def _ending(result: FinalResult) -> str:
    if result.directive is Directive.ABANDON:
        why = result.stopped_by.value if result.stopped_by is not None else "not met"
        return f"given up ({why})"
    return "partly done" if result.unmet or result.withheld else DONE


def _reasons(result: FinalResult) -> tuple[str, ...]:
    """Return the failures with their reasons and the withheld operations, or else how the task was done."""
    failed = [f"{each.criterion}: {each.reason}" if each.reason else each.criterion for each in result.unmet]
    failed += [f"withheld: {act}" for act in result.withheld]
    chosen = failed or ([] if result.directive is Directive.ABANDON else list(result.done))
    return tuple(one_line(reason, REASON) for reason in chosen[:_MOST])


def _told(reasons: tuple[str, ...]) -> str:
    return f" — {'; '.join(reasons)}" if reasons else ""
