"""Tasks of the board as rows, and the one function that moves them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from artoo.agents.board.rules import Mover, Policies, check_transition, needs_review
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Reading, Row, Value, Writing, storable
from artoo.contracts.agents import (
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    BoardTask,
    Complexity,
    Priority,
    TaskChanged,
    TaskMoved,
    TrustLevel,
)
from artoo.contracts.errors import ActorRefused, ClaimLost, MoveRefused
from artoo.contracts.roles import Role

ANYBODY = ""
"""The name under which arrivals for whoever may are noted."""

MOST_NOTES, LONGEST_NOTE, LONGEST_SUMMARY = 20, 4_000, 20_000
"""Notes a task keeps (the newest), and characters of one and of a summary."""

MOST_SUBMISSIONS = 5
"""After so many submissions that are sent back a task waits for the operator."""

_TAKEN = frozenset({BoardState.IN_PROGRESS, BoardState.REVIEW})
_QUEUED = frozenset({BoardState.PENDING, BoardState.BLOCKED, BoardState.REVIEW})


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """The right to work on a task, or to review it, until the lease runs out. `token` proves it.

    `epoch` counts the claims of this task: what comes under an earlier one is refused.
    `resumed`: somebody worked on it before and was interrupted; `task.run` is what they had begun.
    """

    task: BoardTask
    token: str
    agent: str
    epoch: int
    resumed: bool = False


def task_of(row: Row) -> BoardTask:
    """A row of `tasks` as the rest of artoo knows it."""
    return BoardTask(
        id=row["id"],
        text=row["text"],
        creator=row["creator"],
        state=BoardState(row["state"]),
        priority=Priority(row["priority"]),
        complexity=None if row["complexity"] is None else Complexity(row["complexity"]),
        assignee=row["assignee"],
        reviewer=row["reviewer"],
        project=row["project"],
        notes=tuple(json.loads(row["notes"])),
        run=row["run"],
        summary=row["summary"],
        submission=row["submission"],
        made_on=row["made_on"],
        created_at=moment(row["created_at_us"]),
        updated_at=moment(row["updated_at_us"]),
    )


def moved_of(row: Row) -> TaskMoved:
    """A row of `transitions` as the rest of artoo knows it."""
    return TaskMoved(
        event=row["event"],
        board_task=row["board_task"],
        before=None if row["before"] is None else BoardState(row["before"]),
        after=BoardState(row["after"]),
        actor=row["actor"],
        reason=row["reason"],
        at=moment(row["at_us"]),
        by_policy=bool(row["by_policy"]),
    )


def find_row(reading: Reading, task_id: str) -> Row:
    """The row of a task. Raises MoveRefused when the board has none."""
    row = reading.one("SELECT * FROM tasks WHERE id = ?", (task_id,), hold="wait")
    if row is None:
        raise MoveRefused(f"The board has no task {task_id}; `artoo task list` shows those it has.")
    return row


def find(reading: Reading, task_id: str) -> BoardTask:
    """The task. Raises MoveRefused when the board has none."""
    return task_of(find_row(reading, task_id))


def mover_of(reading: Reading, name: str) -> Mover:
    """Who asks for a move. Raises ActorRefused when nobody has that name."""
    if name in (OPERATOR, RUNTIME, POLICY):
        return Mover(name)
    row = reading.one("SELECT trust, paused, stopped FROM agents WHERE name = ?", (name,))
    if row is None:
        raise ActorRefused(f"There is no agent {name!r}; `artoo agent list` shows those there are.")
    idle = row["stopped"] or ("it is paused" if row["paused"] else "")
    return Mover(name, TrustLevel(row["trust"]), idle)


def check_not_retired(reading: Reading, name: str) -> None:
    """Raises ActorRefused when this agent is retired: nothing new is its."""
    if reading.one("SELECT 1 FROM agents WHERE name = ? AND retired", (name,)) is not None:
        raise ActorRefused(f"{name} is retired; name another (artoo agent list).")


def demanded(reading: Reading, policies: Policies, task: BoardTask) -> bool:
    """True when work on the task is reviewed for the sake of who handed it in: a foreign agent, trusted so far."""
    row = reading.one("SELECT trust FROM foreign_tasks WHERE board_task = ?", (task.id,))
    return row is not None and needs_review(
        policies, Mover(task.creator, TrustLevel(row["trust"])), task.complexity
    )


def review_wanted(reading: Reading, policies: Policies, submitter: Mover, task: BoardTask) -> bool:
    """True when a second pair of eyes must approve what `submitter` hands in for this task."""
    if submitter.is_operator:
        return False
    return needs_review(policies, submitter, task.complexity) or demanded(reading, policies, task)


def check_claim(row: Row, claim: TaskClaim) -> None:
    """Raises ClaimLost unless this is the claim that the row is under."""
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
    """Moves a task, keeps the transition and lays it down for the stream, in one transaction.

    Whatever claim there was ends. Raises MoveRefused for a move that the state machine does not have.
    """
    check_transition(task.id, task.state, after)
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
    writing.run(
        "UPDATE tasks SET state = ?, resumable = FALSE, updated_at_us = ? WHERE id = ?",
        (after.value, writing.now_us, task.id),
    )
    record_move(writing, task.id, task.state, after, actor, reason, by_policy=by_policy)
    return find(writing, task.id)


def try_again(writing: Writing, task: BoardTask, actor: str) -> BoardTask:
    """From rejected to pending; every `MOST_SUBMISSIONS`th submission stays rejected until the operator decides."""
    if task.submission % MOST_SUBMISSIONS == 0:
        return task
    return move(writing, task, BoardState.PENDING, actor, "to be done again")


def queue(writing: Writing, task_id: str) -> None:
    """Puts a task at the end of its queue: its waiting begins now, and who may take it is woken."""
    writing.run(
        "UPDATE tasks SET queue = ?, queued_us = ? WHERE id = ?",
        (writing.next_number(), writing.steady_us, task_id),
    )
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
    """Keeps a transition for ever, and lays it down for the stream."""
    reason = clipped(reason, LONGEST_NOTE)
    moved = TaskMoved(
        board_task=task_id,
        before=before,
        after=after,
        actor=actor,
        reason=reason,
        at=writing.now,
        by_policy=by_policy,
    )
    event = writing.emit(Role.BOARD, task_id, moved)
    writing.put(
        "INSERT INTO transitions (position, event, board_task, before, after, actor, reason, by_policy, at_us,"
        " epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT epoch FROM tasks WHERE id = ?))",
        (
            *(writing.next_number(), event, task_id, None if before is None else before.value, after.value),
            *(actor, reason, by_policy, writing.now_us, task_id),
        ),
    )


def record_change(writing: Writing, changed: TaskChanged) -> None:
    """Keeps what was changed about a task for ever, and lays it down for the stream."""
    event = writing.emit(Role.BOARD, changed.board_task, changed)
    writing.run(
        "INSERT INTO task_changes (position, event, board_task, change, actor, detail, at_us)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            *(writing.next_number(), event, changed.board_task, changed.change, changed.actor),
            *(changed.detail, writing.now_us),
        ),
    )
    writing.run("UPDATE tasks SET updated_at_us = ? WHERE id = ?", (writing.now_us, changed.board_task))


def add_note(writing: Writing, task: BoardTask, note: str) -> None:
    """Adds a reason that reaches whoever works on the task next; the oldest give way."""
    notes = (*task.notes, clipped(note, LONGEST_NOTE))[-MOST_NOTES:]
    writing.run("UPDATE tasks SET notes = ? WHERE id = ?", (json.dumps(notes, ensure_ascii=False), task.id))


def lease(writing: Writing, task_id: str, token: str, agent: str, seconds_us: int | None) -> int:
    """Puts a task under a claim, in a new epoch; which. `seconds_us` None: it never runs out (a person's)."""
    values: tuple[Value, ...] = (None, None)
    if seconds_us is not None:
        values = (writing.holder, writing.steady_us + seconds_us)
    rows = writing.all(
        "UPDATE tasks SET epoch = epoch + 1, claim = ?, claimant = ?, holder = ?, lease_us = ? WHERE id = ?"
        " RETURNING epoch",
        (token, agent, *values, task_id),
    )
    return int(rows[0]["epoch"])


def end_claim(writing: Writing, task_id: str) -> None:
    """Whoever held the task holds it no longer."""
    writing.run(
        "UPDATE tasks SET claim = NULL, claimant = NULL, holder = NULL, lease_us = NULL WHERE id = ?", (task_id,)
    )


def clipped(text: str, length: int) -> str:
    """`text` as it can be stored, or its beginning with a mark where it was cut."""
    text = storable(text)
    return text if len(text) <= length else text[: length - 1] + "…"
