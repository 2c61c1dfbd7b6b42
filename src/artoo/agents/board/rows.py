"""Convert database rows to board tasks, and move tasks in SQL, with limits on notes and rejected submissions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from artoo.agents.board.rules import Mover, Policies, check_transition, needs_review
from artoo.agents.storage.transaction import Reading, Row, Writing, made, storable
from artoo.contracts.agents import (
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    BoardTask,
    TaskChanged,
    TaskMoved,
    TrustLevel,
)
from artoo.contracts.errors import ActorRefused, ClaimLost, MoveRefused
from artoo.contracts.roles import Role

ANYBODY = ""
"""The name under which arrivals are counted that any agent may take."""

MOST_NOTES, LONGEST_NOTE, LONGEST_SUMMARY = 20, 4_000, 20_000
"""Maximum number of notes of a task (of which the newest are kept), and of characters of a note and of a
summary."""

MOST_SUBMISSIONS = 5
"""Number of rejected submissions after which a task waits for the operator's decision."""

NO_CLAIM = "claim = NULL, claimant = NULL, holder = NULL, lease_us = NULL"

_TAKEN = frozenset({BoardState.IN_PROGRESS, BoardState.REVIEW})
_QUEUED = frozenset({BoardState.PENDING, BoardState.BLOCKED, BoardState.REVIEW})

_OPEN = (
    "SELECT detail FROM task_changes WHERE board_task = ? AND change = 'question' AND position >"
    " (SELECT max(position) FROM transitions WHERE board_task = ? AND after = 'pending') ORDER BY position"
)

_Kind = Literal["priority", "complexity", "assignee", "reviewer", "released", "asked", "question"]


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """The right of a process to work on a task, or to review it, until the lease expires. `token` proves that the
    caller holds the claim.

    `epoch` counts the claims on this task. An operation with an earlier epoch is refused. `resumed`: true if the
    task was interrupted before. `task.run` is then the run to resume.
    """

    task: BoardTask
    token: str
    agent: str
    epoch: int
    resumed: bool = False


def task_of(row: Row) -> BoardTask:
    """Convert a row of `tasks` to a BoardTask."""
    return made(BoardTask, row, notes=tuple(json.loads(row["notes"])))


def find_row(reading: Reading, task_id: str) -> Row:
    """Return the row of a task. In a write transaction the row is locked. Raises MoveRefused if the task does not
    exist."""
    row = reading.one("SELECT * FROM tasks WHERE id = ?", (task_id,), hold="wait")
    if row is None:
        raise MoveRefused(f"The board has no task {task_id}; `artoo task list` shows those it has.")
    return row


def find(reading: Reading, task_id: str) -> BoardTask:
    """Return the task. Raises MoveRefused if it does not exist."""
    return task_of(find_row(reading, task_id))


def mover_of(reading: Reading, name: str) -> Mover:
    """Return the actor that has this name. Raises ActorRefused if there is none."""
    if name in (OPERATOR, RUNTIME, POLICY):
        return Mover(name)
    row = reading.one("SELECT trust, paused, stopped FROM agents WHERE name = ?", (name,))
    if row is None:
        raise ActorRefused(f"There is no agent {name!r}; `artoo agent list` shows those there are.")
    idle = row["stopped"] or ("it is paused" if row["paused"] else "")
    return Mover(name, TrustLevel(row["trust"]), idle)


def check_not_retired(reading: Reading, name: str) -> None:
    """Raise ActorRefused if this agent is retired, because a retired agent gets no new work."""
    if reading.one("SELECT 1 FROM agents WHERE name = ? AND retired", (name,)) is not None:
        raise ActorRefused(f"{name} is retired; name another (artoo agent list).")


def demanded(reading: Reading, policies: Policies, task: BoardTask) -> bool:
    """Check whether a task must be reviewed because a foreign agent sent it and that agent's level of trust
    requires a review."""
    row = reading.one("SELECT trust FROM foreign_tasks WHERE board_task = ?", (task.id,))
    return row is not None and needs_review(
        policies, Mover(task.creator, TrustLevel(row["trust"])), task.complexity
    )


def review_wanted(reading: Reading, policies: Policies, submitter: Mover, task: BoardTask) -> bool:
    """Check whether the work of `submitter` on this task needs a reviewer's approval."""
    if submitter.is_operator:
        return False
    return needs_review(policies, submitter, task.complexity) or demanded(reading, policies, task)


def check_claim(row: Row, claim: TaskClaim) -> None:
    """Raise ClaimLost unless the row is held by this claim."""
    if row["claim"] != claim.token or row["epoch"] != claim.epoch:
        raise ClaimLost(
            f"{row['id']} is no longer yours: the claim ran out, or the work was stopped or given to another."
            " Stop working on it; nothing of what you hand in counts."
        )


def move(
    writing: Writing,
    task: BoardTask,
    after: BoardState,
    actor: str,
    reason: str = "",
    *,
    by_policy: bool = False,
) -> BoardTask:
    """Move a task to another state, store the move, and add its record for the stream, in one transaction.

    If a process holds a claim on the task, it loses the claim. Raises MoveRefused for a move that the state machine
    does not allow.
    """
    check_transition(task.id, task.state, after)
    # A worker or reviewer that is still busy with the task notices this when it next renews its claim.
    if task.state in _TAKEN:
        end_claim(writing, task.id)
    if after in _QUEUED:
        queue(writing, task.id)
    if after is BoardState.PENDING:
        writing.run(
            "UPDATE tasks SET interruptions = 0, assignee = CASE WHEN open_to_all THEN NULL ELSE assignee END"
            " WHERE id = ?",
            (task.id,),
        )
    writing.change("tasks", task.id, state=after, resumable=False, updated_at_us=writing.now_us)
    record_move(writing, task.id, task.state, after, actor, reason, by_policy=by_policy)
    return find(writing, task.id)


def interrupted(writing: Writing, task: BoardTask, reason: str, *, actor: str = RUNTIME) -> BoardTask:
    """Move a task to blocked, and mark it so that it can be resumed at any time."""
    move(writing, task, BoardState.BLOCKED, actor, reason)
    writing.change("tasks", task.id, resumable=True)
    return find(writing, task.id)


def try_again(writing: Writing, task: BoardTask, actor: str) -> BoardTask:
    """Move a task from rejected to pending. After every `MOST_SUBMISSIONS` submissions the operator decides
    instead."""
    if task.submission % MOST_SUBMISSIONS == 0:
        return task
    return move(writing, task, BoardState.PENDING, actor, "to be done again")


def queue(writing: Writing, task_id: str) -> None:
    """Put a task at the end of its queue, start to count its waiting time, and wake the agents that may take it."""
    writing.change("tasks", task_id, queue=writing.next_number(), queued_us=writing.steady_us)
    writing.arrived(ANYBODY)


def record_move(
    writing: Writing,
    task_id: str,
    before: BoardState | None,
    after: BoardState,
    actor: str,
    reason: str,
    *,
    by_policy: bool = False,
) -> None:
    """Store a move between states permanently, and add its record for the stream."""
    moved = TaskMoved(
        board_task=task_id,
        before=before,
        after=after,
        actor=actor,
        reason=clipped(reason, LONGEST_NOTE),
        at=writing.now,
        by_policy=by_policy,
    )
    event = writing.emit(Role.BOARD, task_id, moved)
    writing.run(
        "INSERT INTO transitions (position, event, board_task, before, after, actor, reason, by_policy, at_us,"
        " epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT epoch FROM tasks WHERE id = ?))",
        (
            *(writing.next_number(), event, task_id, None if before is None else before.value, after.value),
            *(actor, moved.reason, by_policy, writing.now_us, task_id),
        ),
    )


def record(writing: Writing, task: BoardTask, change: _Kind, actor: str, detail: str) -> None:
    """Store another change of a task permanently, and add its record for the stream."""
    detail = clipped(detail, LONGEST_NOTE)
    changed = TaskChanged(board_task=task.id, change=change, actor=actor, detail=detail, at=writing.now)
    writing.insert(
        "task_changes",
        event=writing.emit(Role.BOARD, task.id, changed),
        position=writing.next_number(),
        board_task=task.id,
        change=change,
        actor=actor,
        detail=detail,
        at_us=writing.now_us,
    )
    writing.change("tasks", task.id, updated_at_us=writing.now_us)


def give_to(
    writing: Writing,
    task: BoardTask,
    column: Literal["assignee", "reviewer"],
    name: str | None,
    actor: str,
    why: str = "",
) -> None:
    """Set the assignee or reviewer of a task (None: any agent), and record the change."""
    before = task.assignee if column == "assignee" else task.reviewer
    writing.run(f"UPDATE tasks SET {column} = ? WHERE id = ?", (name, task.id))
    writing.arrived(ANYBODY)
    record(writing, task, column, actor, f"{before or 'anybody'} -> {name or 'anybody'}{why and f': {why}'}")


def add_note(writing: Writing, task: BoardTask, note: str) -> None:
    """Add a note for the agent that works on the task next. The oldest notes are dropped."""
    notes = (*task.notes, clipped(note, LONGEST_NOTE))[-MOST_NOTES:]
    writing.change("tasks", task.id, notes=json.dumps(notes, ensure_ascii=False))


def open_questions(reading: Reading, task_id: str) -> tuple[str, ...]:
    """Return the questions that agents have asked the operator since the task was last pending, oldest first.

    The operator answers them with the reason for moving the task back to pending.
    """
    return reading.names(_OPEN, (task_id, task_id))


def lease(writing: Writing, task_id: str, token: str, agent: str, seconds_us: int | None) -> int:
    """Claim a task in a new epoch, and return the epoch. If `seconds_us` is None, the claim does not expire, which
    is used for the operator."""
    held = (None, None) if seconds_us is None else (writing.holder, writing.steady_us + seconds_us)
    return writing.count(
        "UPDATE tasks SET epoch = epoch + 1, claim = ?, claimant = ?, holder = ?, lease_us = ? WHERE id = ?"
        " RETURNING epoch",
        (token, agent, *held, task_id),
    )


def end_claim(writing: Writing, task_id: str) -> None:
    """Remove the claim on a task."""
    writing.run(f"UPDATE tasks SET {NO_CLAIM} WHERE id = ?", (task_id,))


def clipped(text: str, length: int) -> str:
    """Return `text` without characters that the database cannot store. A longer text is shortened to `length`
    characters and ends with an ellipsis."""
    text = storable(text)
    return text if len(text) <= length else text[: length - 1] + "…"
