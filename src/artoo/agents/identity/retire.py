"""What becomes of a retiring agent's work: what others can do is given back, what they can use stays.

All of it is one transaction with the agent's own row (`registry`), so that nothing is half given back.
"""

from __future__ import annotations

from artoo.agents.board.rows import ANYBODY, end_claim, give_to, interrupted, task_of
from artoo.agents.storage.transaction import Writing
from artoo.contracts.agents import BoardState, BoardTask

RETIRED = "it is retired"
"""Why it may not work."""

_GIVEN_BACK = frozenset({BoardState.PENDING, BoardState.BLOCKED})


def give_all_back(writing: Writing, name: str, actor: str) -> tuple[str, ...]:
    """Gives back the tasks and the letter that an agent has in hand; the tasks that are not its own any more.

    What it handed in stays for its review under its name, and letters that it has not read stay unread.
    """
    rows = writing.all(
        "SELECT * FROM tasks WHERE state NOT IN ('completed', 'cancelled', 'archived')"
        " AND (assignee = :name OR reviewer = :name OR claimant = :name) ORDER BY queue",
        {"name": name},
        hold="wait",
    )
    given = [str(row["id"]) for row in rows if _given_back(writing, task_of(row), row["claimant"], name, actor)]
    writing.run(
        "UPDATE mails SET claim = NULL, holder = NULL, lease_us = NULL WHERE recipient = ? AND partition = 'inbox'"
        " AND claim IS NOT NULL AND id NOT IN (SELECT reply FROM waits WHERE reply IS NOT NULL)",
        (name,),
    )
    writing.arrived(ANYBODY)
    return tuple(given)


def _given_back(writing: Writing, task: BoardTask, claimant: str | None, name: str, actor: str) -> bool:
    """True when the task was the agent's to do. A process that works on it, or reviews it, loses its claim."""
    why = f"{name} is retired"
    if claimant == name and task.state is BoardState.IN_PROGRESS:
        task = interrupted(writing, task, why, actor=actor)
    elif claimant == name:
        end_claim(writing, task.id)
    if task.reviewer == name:
        give_to(writing, task, "reviewer", None, actor, why)
    if task.assignee != name:
        return False
    if task.state in _GIVEN_BACK:  # what one agent began, another does not resume under its own name
        writing.change("tasks", task.id, open_to_all=True, run=None)
        give_to(writing, task, "assignee", None, actor, why)
        return True
    # Whose work is reviewed stays known; should it be done again, anybody may.
    writing.change("tasks", task.id, open_to_all=True)
    return False
