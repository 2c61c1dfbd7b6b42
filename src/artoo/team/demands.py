"""Compose the request of a board task: its text, and the operator's later demands.

The operator's reasons for sending a version back, and their answers, change the request. An agent's only say
what was wrong with a version. So its worker and its reviewer go by the same request.
"""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.agents import OPERATOR, BoardTask

_BESIDES = (
    "The operator has asked besides, later lines before earlier ones. This is a part of the request, and counts"
    " more than what any agent says of it:"
)


def is_demand(note: str) -> bool:
    """Check whether a note on a task is the operator's."""
    return note.startswith(f"{OPERATOR}: ")


def with_demands(task: BoardTask) -> str:
    """Return the request with the operator's demands."""
    demands = [note for note in task.notes if is_demand(note)]
    if not demands:
        return task.text
    return "\n".join((task.text, _BESIDES, *(f"- {note}" for note in demands)))


def sent_back(notes: Sequence[str]) -> str:
    """Return why an agent, or artoo, sent the last version back; empty when it was the operator, or no one."""
    return notes[-1] if notes and not is_demand(notes[-1]) else ""


def earlier_reviews(notes: Sequence[str]) -> str:
    """Return the notes on earlier versions, without those that are a part of the request."""
    found = [f"- {note}" for note in notes[:-1] if not is_demand(note)]
    return "\n".join(("Earlier versions of this were sent back too:", *found)) if found else ""
