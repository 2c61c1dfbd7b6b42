"""Calls whose changes took effect: what the journal keeps of each, and how a resumed task gets its outcome back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import ActNote
from artoo.tools.tool import Outcome
from artoo.tools.under_way import current_act

Notes = Mapping[str, ActNote]
"""The journal's notes of an earlier process of the same task, by act."""


def note_of(outcome: Outcome, call: str) -> ActNote | None:
    """What the journal should keep of the call under way if its changes are applied; None when there is none.

    `outcome` is how the call ends then, `call` the digest of what was run.
    """
    act = current_act()
    return ActNote(act, call, json.dumps(asdict(outcome), ensure_ascii=True)) if act else None


def outcome_before(notes: Notes, call: str) -> Outcome | None:
    """How the call under way ended in an earlier process, when its changes took effect there; else None.

    A note about something else that was run under the same act is believed no more than its opposite: nothing is
    run then, and nothing counts as done. Raises SandboxError when the note cannot be read.
    """
    note = notes.get(current_act()) if notes else None
    if note is None:
        return None
    if note.call != call:
        reason = (
            "the journal says that another call took effect at this point before artoo died; nothing was run: "
            "look at the files first"
        )
        return Outcome(status=CallStatus.INTERRUPTED, reason=reason)
    try:
        return _reader().validate_python(json.loads(note.outcome))
    except (ValueError, ValidationError) as error:
        raise SandboxError(f"the journal's note of {note.act} cannot be read: {error}") from error


@cache
def _reader() -> TypeAdapter[Outcome]:
    return TypeAdapter(Outcome)
