"""Calls whose changes took effect: what the view keeps of each, and how a resumed task gets the outcome back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.execution import CallStatus
from artoo.contracts.well_formed import well_formed_value
from artoo.ports.sandbox import ActNote
from artoo.tools.tool import Outcome
from artoo.tools.under_way import current_call


def noting() -> Callable[[Outcome], ActNote | None]:
    """Makes what the view is to keep of the call under way, given how it ends; None when there is no such call."""
    call = current_call()

    def note(outcome: Outcome) -> ActNote | None:
        if call is None or not call.ticket.act:
            return None
        text = json.dumps(well_formed_value(asdict(outcome)), ensure_ascii=False)
        return ActNote(call.ticket.act, call.digest(), text)

    return note


def outcome_before(note: ActNote, digest: str) -> Outcome:
    """How a call ended in an earlier process. `digest`: of the call that is to be made under that act now.

    A note about something else is believed no more than its opposite: nothing is run, and nothing counts as done.
    """
    if note.call != digest:
        return _interrupted("another call took effect at this point before artoo died, and its record is lost")
    try:
        return _reader().validate_json(note.outcome)
    except ValidationError as error:
        return _interrupted(f"it took effect before artoo died, but how it ended cannot be read ({error})")


def _interrupted(what: str) -> Outcome:
    reason = f"{what}; nothing was run: look at the files first"
    return Outcome(status=CallStatus.INTERRUPTED, reason=reason)


@cache
def _reader() -> TypeAdapter[Outcome]:
    return TypeAdapter(Outcome)
