"""Store the messages of a foreign agent's task, with their limit, and join them to the task's text.

Worker and reviewer get one text of the task, which consists of all its messages. A run that began before the last
message does not know this message. Its work is therefore done again, beginning with the files that exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.board.rows import move, try_again
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask
from artoo.contracts.errors import ForeignRefused

MOST_MESSAGES = 20
"""Maximum number of messages of one task."""
MORE_ASKED = "more was asked for"
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """One message of a task. It has the id that the sender gave it, and the text."""

    message: str
    text: str


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """A message that was received before, with its task and its text."""

    board_task: str
    text: str


def messages_of(reading: Reading, task_id: str) -> tuple[ForeignMessage, ...]:
    """Return the messages of a task in order."""
    rows = reading.all(
        "SELECT message, text FROM foreign_messages WHERE board_task = ? ORDER BY number LIMIT ?",
        (task_id, MOST_MESSAGES),
    )
    return tuple(ForeignMessage(row["message"], row["text"]) for row in rows)


def known_message(reading: Reading, peer: str, agent: str, message: str) -> KnownMessage | None:
    """Return the earlier message with this id. Return None if the id is new."""
    row = reading.one(
        "SELECT board_task, text FROM foreign_messages WHERE peer = ? AND agent = ? AND message = ?",
        (peer, agent, message),
    )
    return None if row is None else KnownMessage(row["board_task"], row["text"])


def keep_message(writing: Writing, peer: str, agent: str, task_id: str, said: ForeignMessage) -> None:
    """Store a message of a task. Raises ForeignRefused if the task already has the maximum number of messages."""
    # The number of messages can serve as the number of the next one, because messages of a task are never deleted.
    number = writing.count("SELECT count(*) FROM foreign_messages WHERE board_task = ?", (task_id,))
    if number >= MOST_MESSAGES:
        raise ForeignRefused(
            f"the task has {number} messages, as many as a task may; without taskId, a new one begins"
        )
    writing.insert(
        "foreign_messages",
        peer=peer,
        agent=agent,
        message=said.message,
        board_task=task_id,
        number=number,
        at_us=writing.now_us,
        text=said.text,
    )


def extended(task: BoardTask, text: str, longest: int) -> str:
    """Return the text of a task with one more message. Raises ForeignRefused if the text would be too long."""
    whole = f"{task.text}{_BETWEEN}{text}"
    if len(whole) > longest:
        raise ForeignRefused(
            f"with this the task's text would have {len(whole):,} characters; all its messages together may have"
            f" {longest:,}"
        )
    return whole


def heard_so_far(writing: Writing, task: BoardTask) -> None:
    """Record the length of the task's text at the time at which a run begins. The run knows only this part."""
    writing.change("foreign_tasks", task.id, key="board_task", heard=len(task.text))


def more_asked(reading: Reading, task: BoardTask, worker: str) -> bool:
    """Check whether the text of a task has grown since its run began. A text only grows, so it is enough to compare
    the lengths.

    The operator works without a run, and is assumed to have read the current text.
    """
    if worker == OPERATOR:
        return False
    row = reading.one("SELECT heard FROM foreign_tasks WHERE board_task = ?", (task.id,))
    return row is not None and row["heard"] is not None and int(row["heard"]) < len(task.text)


def done_again(writing: Writing, task: BoardTask) -> BoardTask:
    """Move a task from review through rejected to pending, on behalf of its sender."""
    task = move(writing, task, BoardState.REJECTED, task.creator, MORE_ASKED)
    return try_again(writing, task, task.creator)
