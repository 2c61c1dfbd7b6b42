"""Claim, renew, block and finish work on a board task under a lease, with the limit on interruptions.

A claim belongs to a process, which renews it during the work. If the process dies or stops renewing, `recover`
moves the task to `blocked` as `runtime`, and its agent may take it again.
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
"""Maximum number of deaths of its process, or of returns while other work was completed, before a task fails. The
operator may retry it."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The ids of tasks whose claims were ended because their processes are gone: in progress, and in review."""

    work: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()


class Work(Stored):
    """The worker's operations. A `claim` comes from `Allocation`. A claim that has ended raises ClaimLost."""

    @writes
    def renew(self, writing: Writing, claim: TaskClaim, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renew the claim, because the process still works on the task or reviews it."""
        row = find_row(writing, claim.task.id)
        check_claim(row, claim)
        if row["lease_us"] is not None:
            writing.change("tasks", claim.task.id, lease_us=writing.steady_us + seconds_us(lease_seconds))

    @writes
    def began(self, writing: Writing, claim: TaskClaim, run: str) -> None:
        """Record the run (the dual loop's task) of a board task, so that another process can resume it.

        For a new run, the length of the task's text is recorded, because later additions are unknown to the run.
        """
        if _held(writing, claim).run != run:
            heard_so_far(writing, claim.task)
        writing.change("tasks", claim.task.id, run=run)

    @writes
    def ask(self, writing: Writing, task_id: str, agent: str, question: str) -> None:
        """Record a question to the operator, once. The submission is then left to the operator."""
        question = clipped(question, LONGEST_NOTE)
        if question not in open_questions(writing, task_id):
            record(writing, find(writing, task_id), "question", agent, question)

    @writes
    def fail(self, writing: Writing, claim: TaskClaim, reason: str, summary: str = "") -> BoardTask:
        """End the work without a result. If a foreign agent has sent more messages meanwhile, the work is repeated
        instead."""
        task = _held(writing, claim)
        if more_asked(writing, task, claim.agent):
            writing.change("tasks", task.id, run=None)
            return interrupted(writing, task, MORE_ASKED, actor=task.creator)
        if summary:
            writing.change("tasks", task.id, summary=clipped(summary, LONGEST_SUMMARY))
        return move(writing, task, BoardState.FAILED, claim.agent, reason)

    @writes
    def hold_up(self, writing: Writing, claim: TaskClaim, reason: str) -> BoardTask:
        """Block a task whose worker cannot continue until the operator helps and releases it."""
        return move(writing, _held(writing, claim), BoardState.BLOCKED, claim.agent, reason)

    @writes
    def give_back(self, writing: Writing, claim: TaskClaim, reason: str, *, counted: bool = False) -> BoardTask:
        """Block a task as `runtime` because its process stops, so that it can be taken again at any time.

        `counted`: if true, the work could not be done. This counts like a death of the process if other work was
        submitted since the last time, because then only this task cannot be done.
        """
        task = _held(writing, claim)
        if counted and _others_went_on(writing, task.id):
            return _counted(writing, task, reason)
        return interrupted(writing, task, reason)

    @writes
    def block(self, writing: Writing, task_id: str, actor: str, reason: str) -> BoardTask:
        """Stop work on a task as the operator or artoo itself. The claim of its worker ends."""
        mover = mover_of(writing, actor)
        if not (mover.is_operator or mover.is_runtime):
            raise ActorRefused(
                f"Task {task_id} cannot be stopped by {actor}: only the operator may, or whoever works on it."
            )
        return move(writing, find(writing, task_id), BoardState.BLOCKED, actor, reason)

    @writes
    def recover(self, writing: Writing, is_dead: Callable[[str], bool] | None = None) -> Recovered:
        """End claims of processes that are dead or no longer renew. Run it at start and periodically.

        Work that any agent may do and whose agent's machine is gone is given to other agents.
        """
        # The check notices a dead process at once. The lease alone would keep its work for a minute.
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
    """Claim the task whose id `found` selects, in one statement and a new epoch. None if it selects none.

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
    # The returned row still has the flag of a blocked task, which the next move resets.
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
    """Count an end without a result. The task can be taken again unless this has happened too often."""
    count = writing.count(
        "UPDATE tasks SET interruptions = interruptions + 1 WHERE id = ? RETURNING interruptions", (task.id,)
    )
    # A task that kills every process that takes it must not run for ever.
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
    """Release interrupted tasks that any agent may do, if their agents' seats on other machines have expired.

    Agents of this machine resume their own tasks, regardless of how long the machine was off.
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
