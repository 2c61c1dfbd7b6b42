"""Summarise a finished task in one sentence to remember, with its length, from the request and the result."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.cognition.similarity import general, one_line
from artoo.contracts.solution import Directive, FinalResult, StoppedBy

ASKED, REASON, WHOLE = 160, 160, 600
"""Maximum number of characters of the request, of each reason, and of a whole observation."""
DONE = "done"
_MOST = 3


@dataclass(frozen=True, slots=True)
class Noted:
    """An observation. `text` is for people and prompts. `pattern` (ending|asked|why) is equal for outcomes that are
    equal."""

    text: str
    pattern: str


def observation_of(request: str, result: FinalResult) -> Noted | None:
    """Return the observation of a task. Return None if its ending teaches nothing.

    The output of the task is not part of it, because the task's log contains the output. Text from the request or
    from a tool is in quotation marks. An ending because of a missing input is observed too, because the observation
    names this input.
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
    """Return the request that an observation from `observation_of` contains. A text of any other form is returned
    whole."""
    asked, quote, _ = observation.removeprefix('"').partition('": ')
    return asked if quote and observation.startswith('"') else observation


def _ending(result: FinalResult) -> str:
    if result.directive is Directive.ABANDON:
        why = result.stopped_by.value if result.stopped_by is not None else "not met"
        return f"given up ({why})"
    return "partly done" if result.unmet or result.withheld else DONE


def _reasons(result: FinalResult) -> tuple[str, ...]:
    """Return the failures with their reasons, and the operations that were withheld. If there are none, return how
    the task was done."""
    failed = [f"{each.criterion}: {each.reason}" if each.reason else each.criterion for each in result.unmet]
    failed += [f"withheld: {act}" for act in result.withheld]
    chosen = failed or ([] if result.directive is Directive.ABANDON else list(result.done))
    return tuple(one_line(reason, REASON) for reason in chosen[:_MOST])


def _told(reasons: tuple[str, ...]) -> str:
    return f" — {'; '.join(reasons)}" if reasons else ""
