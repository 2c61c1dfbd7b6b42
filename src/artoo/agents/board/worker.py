"""Claim, renew, block and finish work on a board task under a lease, with the limit on interruptions.

A claim belongs to one process, which renews it while it works. If the process dies or stops to renew the claim,
`recover` moves the task to `blocked` on behalf of artoo (`runtime`), and the agent may take it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.rows import (
    ANYBODY,
    LONGEST_NOTE,
    LONGEST_SUMMARY,
    TaskClaim,
    add_note,
    check_claim,
    clipped,
    end_claim,
    find,
    find_row,
    give_to,
    interrupted,
    move,
    mover_of,
    open_questions,
    queue,
    record,
    record_move,
    task_of,
)
from artoo.agents.board.rules import check_holder
from artoo.agents.foreign.messages import MORE_ASKED, heard_so_far, more_asked
from artoo.agents.storage.database import Stored, writes
from artoo.agents.storage.monotonic_clock import LEASE_SECONDS, seconds_us
from artoo.agents.storage.transaction import Value, Writing
from artoo.contracts.agents import RUNTIME, BoardState, BoardTask
from artoo.contracts.errors import ActorRefused

MOST_INTERRUPTIONS = 10
"""Maximum number of times that a task is interrupted before it fails. A death of its process counts, and so does
giving the task back while other work was completed. The operator may retry it afterwards."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The ids of the tasks whose claims were ended because their processes no longer exist. Some were in progress,
    others in review."""

    work: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()


class Work(Stored):
    """The operations of workers. A `claim` comes from `Allocation`. If the claim has ended, a method raises
    ClaimLost."""

    @writes
    def renew(self, writing: Writing, claim: TaskClaim, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renew the claim, because the process is still working on the task or reviewing it."""
        row = find_row(writing, claim.task.id)
        check_claim(row, claim)
        if row["lease_us"] is not None:
            writing.change("tasks", claim.task.id, lease_us=writing.steady_us + seconds_us(lease_seconds))

    @writes
    def began(self, writing: Writing, claim: TaskClaim, run: str) -> None:
        """Record which run of the dual loop works on a board task, so that another process can resume the run.

        If the run is new, the length of the task's text is recorded too, because the run does not know of later
        additions.
        """
        if _held(writing, claim).run != run:
            heard_so_far(writing, claim.task)
        writing.change("tasks", claim.task.id, run=run)

    @writes
    def ask(self, writing: Writing, task_id: str, agent: str, question: str) -> None:
        """Record a question to the operator. A repeated question is recorded once. The submission is then left to
        the operator to review."""
        question = clipped(question, LONGEST_NOTE)
        if question not in open_questions(writing, task_id):
            record(writing, find(writing, task_id), "question", agent, question)

    @writes
    def fail(self, writing: Writing, claim: TaskClaim, reason: str, summary: str = "") -> BoardTask:
        """End the work without a result. If a foreign agent has sent further messages since the work began, the
        work is done again instead."""
        task = _held(writing, claim)
        if more_asked(writing, task, claim.agent):
            writing.change("tasks", task.id, run=None)
            return interrupted(writing, task, MORE_ASKED, actor=task.creator)
        if summary:
            writing.change("tasks", task.id, summary=clipped(summary, LONGEST_SUMMARY))
        return move(writing, task, BoardState.FAILED, claim.agent, reason)

    @writes
    def hold_up(self, writing: Writing, claim: TaskClaim, reason: str) -> BoardTask:
        """Block a task whose worker cannot continue before the operator helps and releases the task."""
        return move(writing, _held(writing, claim), BoardState.BLOCKED, claim.agent, reason)

    @writes
    def give_back(self, writing: Writing, claim: TaskClaim, reason: str, *, counted: bool = False) -> BoardTask:
        """Block a task on behalf of artoo (`runtime`), because its process stops. The task can be taken again at
        any time.

        `counted`: true if the work could not be done. It then counts like a death of the process, provided that
        other work was submitted since the last time. Only this task cannot be done in that case.
        """
        task = _held(writing, claim)
        if counted and _others_went_on(writing, task.id):
            return _counted(writing, task, reason)
        return interrupted(writing, task, reason)

    @writes
    def block(self, writing: Writing, task_id: str, actor: str, reason: str) -> BoardTask:
        """Stop work on a task as the operator or artoo itself. The worker loses its claim."""
        mover = mover_of(writing, actor)
        if not (mover.is_operator or mover.is_runtime):
            raise ActorRefused(
                f"Task {task_id} cannot be stopped by {actor}: only the operator may, or whoever works on it."
            )
        return move(writing, find(writing, task_id), BoardState.BLOCKED, actor, reason)

    @writes
    def recover(self, writing: Writing, is_dead: Callable[[str], bool] | None = None) -> Recovered:
        """End the claims of processes that are dead or no longer renew them. It must be called at the start and
        then periodically.

        If any agent may do the work, and the machine of its agent is gone, it is given to other agents.
        """
        # The check of the process notices its death at once. With the lease alone, the task would stay claimed for
        # up to a minute.
        is_dead = is_dead or self.database.is_dead
        working, reviewing = list[str](), list[str]()
        for row in writing.all("SELECT * FROM tasks WHERE holder IS NOT NULL", hold="skip"):
            ran_out = row["lease_us"] <= writing.steady_us
            if not ran_out and not is_dead(row["holder"]):
                continue
            if row["state"] == BoardState.REVIEW:
                end_claim(writing, row["id"])
                writing.arrived(ANYBODY)
                reviewing.append(row["id"])
            else:
                ended = "its worker's claim ran out", "the process that worked on it ended without a word"
                _counted(writing, task_of(row), ended[not ran_out])
                working.append(row["id"])
        _set_free(writing)
        return Recovered(tuple(working), tuple(reviewing))


def claim_where(
    writing: Writing, found: str, parameters: Mapping[str, Value], agent: str, token: str, lease_us: int
) -> TaskClaim | None:
    """Claim the task whose id the expression `found` selects. This is one statement, and it begins a new epoch.
    Return None if the expression selects no task.

    `found` is an SQL expression with `parameters`. It selects a pending task, or a blocked one to be resumed.
    """
    row = writing.one(
        "UPDATE tasks SET state = 'in_progress', assignee = :agent, epoch = epoch + 1, claim = :claim,"
        " claimant = :agent, holder = :holder, lease_us = :until, updated_at_us = :now"
        f" WHERE id = {found} RETURNING *",
        {
            **parameters,
            "agent": agent,
            "claim": token,
            "holder": writing.holder,
            "until": writing.steady_us + lease_us,
            "now": writing.now_us,
        },
    )
    if row is None:
        return None
    # The returned row still has the flag of a blocked task, which the next move removes.
    claim = TaskClaim(task_of(row), token, agent, row["epoch"], resumed=bool(row["resumable"]))
    before, why = (BoardState.BLOCKED, "taken up again") if claim.resumed else (BoardState.PENDING, "taken")
    record_move(writing, claim.task.id, before, BoardState.IN_PROGRESS, agent, why)
    return claim


def _held(writing: Writing, claim: TaskClaim) -> BoardTask:
    """Return the task under this claim. Raises ClaimLost if the claim has ended."""
    row = find_row(writing, claim.task.id)
    check_claim(row, claim)
    task = task_of(row)
    check_holder(task, mover_of(writing, claim.agent), "worked on")
    return task


def _counted(writing: Writing, task: BoardTask, reason: str) -> BoardTask:
    """Count an end of the work without a result. The task can be taken again, unless this has happened too
    often."""
    count = writing.count(
        "UPDATE tasks SET interruptions = interruptions + 1 WHERE id = ? RETURNING interruptions", (task.id,)
    )
    # Otherwise a task that kills every process would be taken again and again.
    if count < MOST_INTERRUPTIONS:
        return interrupted(writing, task, reason)
    add_note(writing, task, f"{RUNTIME}: {reason}, for the {count}th time")
    return move(writing, task, BoardState.FAILED, RUNTIME, f"{reason}, for the {count}th time")


def _others_went_on(writing: Writing, task_id: str) -> bool:
    """Check whether other work was submitted since this task was last given back."""
    later = (
        "SELECT count(*) FROM transitions WHERE board_task <> ? AND after = 'review' AND position > (SELECT"
        " max(position) FROM transitions WHERE board_task = ? AND after = 'blocked' AND actor = ?)"
    )
    return writing.count(later, (task_id, task_id, RUNTIME)) > 0


def _set_free(writing: Writing) -> None:
    """Release the interrupted tasks that any agent may do, if the seats of their agents on other machines have
    expired.

    An agent of this machine resumes its own task, however long the machine was switched off.
    """
    here = machine_of(writing.holder)
    if not here:
        # The holder has no machine name, so only one machine uses the database.
        return
    rows = writing.all(
        "SELECT * FROM tasks WHERE state = 'blocked' AND resumable AND open_to_all AND assignee IN"
        " (SELECT agent FROM seats WHERE lease_us <= ? AND substr(holder, 1, ?) <> ?)",
        (writing.steady_us, len(here) + 1, f"{here}/"),
        hold="skip",
    )
    for row in rows:
        task = task_of(row)
        writing.change("tasks", task.id, run=None)
        give_to(writing, task, "assignee", None, RUNTIME, "its machine is gone")
        queue(writing, task.id)
