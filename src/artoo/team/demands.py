"""What is asked of a task of the board: its text, and what the operator has asked besides since then.

The operator's reasons for sending a version back, and their answers, change the request. An agent's only say
what was wrong with a version. So whoever works on it and whoever reviews it go by the same request.
"""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.agents import OPERATOR, BoardTask

_BESIDES = (
    "The operator has asked besides, later lines before earlier ones. This is a part of the request, and counts"
    " more than what any agent says of it:"
)


def is_demand(note: str) -> bool:
    """Whether a note on a task is the operator's own word."""
    return note.startswith(f"{OPERATOR}: ")


def with_demands(task: BoardTask) -> str:
    """The request as it stands now."""
    demands = [note for note in task.notes if is_demand(note)]
    if not demands:
        return task.text
    return "\n".join((task.text, _BESIDES, *(f"- {note}" for note in demands)))


def sent_back(notes: Sequence[str]) -> str:
    """Why an agent, or artoo, sent the last version back; empty when it was the operator, or nobody."""
    return notes[-1] if notes and not is_demand(notes[-1]) else ""


def earlier_reviews(notes: Sequence[str]) -> str:
    """What was said of earlier versions, without what is a part of the request."""
    found = [f"- {note}" for note in notes[:-1] if not is_demand(note)]
    return "\n".join(("Earlier versions of this were sent back too:", *found)) if found else ""
