"""What an agent has asked the operator about a task, and has no answer to yet.

An answer is the operator's reason for letting the task be done again: a question is open until it is pending anew.
"""

from __future__ import annotations

from artoo.agents.board.add_task import record
from artoo.agents.board.rows import LONGEST_NOTE, clipped, find
from artoo.agents.storage.transaction import Reading, Writing

_OPEN = (
    "SELECT detail FROM task_changes WHERE board_task = ? AND change = 'question' AND position >"
    " (SELECT max(position) FROM transitions WHERE board_task = ? AND after = 'pending') ORDER BY position"
)


def ask_in(writing: Writing, task_id: str, agent: str, question: str) -> None:
    """Puts a question on record, once: whoever goes on after a crash asks it again."""
    question = clipped(question, LONGEST_NOTE)
    if question not in open_questions(writing, task_id):
        record(writing, find(writing, task_id), "question", agent, question)


def open_questions(reading: Reading, task_id: str) -> tuple[str, ...]:
    """The questions that nobody has answered, first asked first."""
    return tuple(str(row["detail"]) for row in reading.all(_OPEN, (task_id, task_id)))
