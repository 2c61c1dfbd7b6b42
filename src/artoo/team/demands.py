"""Compose a board task's request from its text, the operator's answers and reasons.

The operator's answers, and the operator's reasons for sending a version back, change the request. The reasons of an
agent only describe what is wrong with a version. Worker and reviewer thus have the same request.
"""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.agents import OPERATOR, BoardTask

_BESIDES = (
    "The operator has asked besides, later lines before earlier ones. This is a part of the request, and counts"
    " more than what any agent says of it:"
)


def is_demand(note: str) -> bool:
    """Check whether a note on a task was written by the operator."""
    return note.startswith(f"{OPERATOR}: ")


def with_demands(task: BoardTask) -> str:
    """Return the text of a task together with the operator's demands."""
    demands = [note for note in task.notes if is_demand(note)]
    if not demands:
        return task.text
    return "\n".join((task.text, _BESIDES, *(f"- {note}" for note in demands)))


def sent_back(notes: Sequence[str]) -> str:
    """Return the reason why an agent, or artoo, sent the last version back. Return "" if the operator sent it back,
    or no one did."""
    return notes[-1] if notes and not is_demand(notes[-1]) else ""


def earlier_reviews(notes: Sequence[str]) -> str:
    """Return the notes on earlier versions. The operator's demands are left out."""
    found = [f"- {note}" for note in notes[:-1] if not is_demand(note)]
    return "\n".join(("Earlier versions of this were sent back too:", *found)) if found else ""
