"""The worker's side of the board: a task under a lease, and every way in which work on it ends.

A claim belongs to a process. While it works it renews; when it dies, or stops renewing, `recover` takes the task
back through `blocked`, attributed to `runtime`, and whoever it belongs to may take it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from artoo.agents.board.add_task import record
from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.open_questions import ask_in
from artoo.agents.board.rows import (
    ANYBODY,
    LONGEST_SUMMARY,
    TaskClaim,
    add_note,
    check_claim,
    clipped,
    end_claim,
    find,
    find_row,
    move,
    mover_of,
    queue,
    record_move,
    task_of,
)
from artoo.agents.board.rules import Mover, check_holder
from artoo.agents.foreign.messages import MORE_ASKED, heard_so_far, more_asked
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Value, Writing
from artoo.contracts.agents import RUNTIME, BoardState, BoardTask
from artoo.contracts.errors import ActorRefused

LEASE_SECONDS = 60.0
"""How long a claim holds without being renewed; renew three times as often."""

MOST_INTERRUPTIONS = 10
"""A task that took so many processes down with it, or was given back so often while others went on, fails; the
operator may try it again."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was taken back from processes that are gone: tasks (work), tasks (reviews)."""

    work: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()


class Work:
    """See Board. `claim` is what `Allocation` gave; one that is over raises ClaimLost. Handing in: see `Merges`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def renew(self, claim: TaskClaim, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """The process still works on it (or reviews it)."""

        def work(writing: Writing) -> None:
            check_claim(find_row(writing, claim.task.id), claim)
            writing.run(
                "UPDATE tasks SET lease_us = ? WHERE id = ? AND lease_us IS NOT NULL",
                (writing.steady_us + seconds_us(lease_seconds), claim.task.id),
            )

        await self._database.write(work)

    async def began(self, claim: TaskClaim, run: str) -> None:
        """Notes the dual loop's task that works on it, so that another process can resume that.

        A run that is resumed knows of the task what it was told at its beginning.
        """

        def work(writing: Writing) -> None:
            if _held(writing, claim).run != run:
                heard_so_far(writing, claim.task)
            writing.run("UPDATE tasks SET run = ? WHERE id = ?", (run, claim.task.id))

        await self._database.write(work)

    async def ask(self, task_id: str, agent: str, question: str) -> None:
        """The operator is asked something about the task: what is handed in waits for them."""
        await self._database.write(lambda writing: ask_in(writing, task_id, agent, question))

    async def fail(self, claim: TaskClaim, reason: str, summary: str = "") -> BoardTask:
        """The work came to an end without a result. When more was asked for meanwhile, it begins anew instead."""

        def work(writing: Writing) -> BoardTask:
            task = _held(writing, claim)
            if more_asked(writing, task, claim.agent):
                writing.run("UPDATE tasks SET run = NULL WHERE id = ?", (task.id,))
                return interrupted(writing, task, MORE_ASKED, actor=task.creator)
            if summary:
                writing.run(
                    "UPDATE tasks SET summary = ? WHERE id = ?", (clipped(summary, LONGEST_SUMMARY), task.id)
                )
            return move(writing, task, BoardState.FAILED, claim.agent, reason)

        return await self._database.write(work)

    async def hold_up(self, claim: TaskClaim, reason: str) -> BoardTask:
        """The worker cannot go on until somebody helps: blocked until released."""
        return await self._database.write(
            lambda writing: move(writing, _held(writing, claim), BoardState.BLOCKED, claim.agent, reason)
        )

    async def give_back(self, claim: TaskClaim, reason: str, *, counted: bool = False) -> BoardTask:
        """The process stops working, not the task: blocked by `runtime`, to be taken again at any time.

        `counted`: it could not be worked on. Such an end counts like a process that died when work of others was
        handed in since the last one: then it is this task that cannot be done, and nothing else stands still.
        """

        def work(writing: Writing) -> BoardTask:
            task = _held(writing, claim)
            if counted and _others_went_on(writing, task.id):
                return _counted(writing, task, reason)
            return interrupted(writing, task, reason)

        return await self._database.write(work)

    async def block(self, task_id: str, actor: str, reason: str) -> BoardTask:
        """Stops work on a task from outside: the operator, or artoo itself. Its worker's claim is over."""

        def work(writing: Writing) -> BoardTask:
            mover, task = mover_of(writing, actor), find(writing, task_id)
            _check_outsider(task, mover)
            return move(writing, task, BoardState.BLOCKED, actor, reason)

        return await self._database.write(work)

    async def recover(self, is_dead: Callable[[str], bool] | None = None) -> Recovered:
        """Takes back what processes held that are gone or no longer renew. Run it at start and at every pulse.

        What anybody may do does not wait for an agent whose machine is gone: it begins anew elsewhere.
        """
        is_dead = is_dead or self._database.is_dead

        def work(writing: Writing) -> Recovered:
            rows = writing.all(
                "SELECT id, state, holder, lease_us FROM tasks WHERE holder IS NOT NULL", hold="skip"
            )
            working: list[str] = []
            reviewing: list[str] = []
            for row in rows:
                ran_out = row["lease_us"] <= writing.steady_us
                if not ran_out and not is_dead(row["holder"]):
                    continue
                if row["state"] == BoardState.REVIEW:
                    end_claim(writing, row["id"])
                    writing.arrived(ANYBODY)
                    reviewing.append(row["id"])
                else:
                    _take_back(writing, row["id"], ran_out=ran_out)
                    working.append(row["id"])
            _set_free(writing)
            return Recovered(tuple(working), tuple(reviewing))

        return await self._database.write(work)


def claim_where(
    writing: Writing, found: str, parameters: Mapping[str, Value], agent: str, token: str, lease_us: int
) -> TaskClaim | None:
    """Claims the task whose id `found` gives, in one statement and a new epoch; None: it gives none.

    `found` is an expression with its parameters. What it finds is pending, or blocked and to be taken up again.
    """
    rows = writing.all(
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
    if not rows:
        return None
    row = rows[0]
    # Whether it was blocked stands in the row still; the next move takes that back.
    claim = TaskClaim(task_of(row), token, agent, row["epoch"], resumed=bool(row["resumable"]))
    before, why = (BoardState.BLOCKED, "taken up again") if claim.resumed else (BoardState.PENDING, "taken")
    record_move(writing, claim.task.id, before, BoardState.IN_PROGRESS, agent, why)
    return claim


def _held(writing: Writing, claim: TaskClaim) -> BoardTask:
    """The task under this claim. Raises ClaimLost when it is so no longer."""
    row = find_row(writing, claim.task.id)
    check_claim(row, claim)
    task = task_of(row)
    check_holder(task, mover_of(writing, claim.agent), "worked on")
    return task


def _check_outsider(task: BoardTask, mover: Mover) -> None:
    """An agent ends its own work by its claim, which proves that it is the process that works."""
    if not (mover.is_operator or mover.is_runtime):
        raise ActorRefused(
            f"Task {task.id} cannot be stopped by {mover.name}: only the operator may, or whoever works on it."
        )


def interrupted(writing: Writing, task: BoardTask, reason: str, *, actor: str = RUNTIME) -> BoardTask:
    """Stops work on a task, which may be taken up again at any time."""
    move(writing, task, BoardState.BLOCKED, actor, reason)
    writing.run("UPDATE tasks SET resumable = TRUE WHERE id = ?", (task.id,))
    queue(writing, task.id)
    return find(writing, task.id)


def _take_back(writing: Writing, task_id: str, *, ran_out: bool) -> None:
    task = find(writing, task_id)
    reason = "its worker's claim ran out" if ran_out else "the process that worked on it ended without a word"
    _counted(writing, task, reason)


def _counted(writing: Writing, task: BoardTask, reason: str) -> BoardTask:
    """One end more without a result: to be taken again, until that has happened too often."""
    writing.run("UPDATE tasks SET interruptions = interruptions + 1 WHERE id = ?", (task.id,))
    count = writing.count("SELECT interruptions FROM tasks WHERE id = ?", (task.id,))
    if count < MOST_INTERRUPTIONS:
        return interrupted(writing, task, reason)
    add_note(writing, task, f"{RUNTIME}: {reason}, for the {count}th time")
    return move(writing, task, BoardState.FAILED, RUNTIME, f"{reason}, for the {count}th time")


def _others_went_on(writing: Writing, task_id: str) -> bool:
    """Whether other work was handed in since this task was given back last."""
    last = writing.one(
        "SELECT max(position) AS last FROM transitions WHERE board_task = ? AND after = 'blocked' AND actor = ?",
        (task_id, RUNTIME),
    )
    if last is None or last["last"] is None:
        return False
    return bool(
        writing.count(
            "SELECT count(*) FROM transitions WHERE board_task <> ? AND after = 'review' AND position > ?",
            (task_id, last["last"]),
        )
    )


def _set_free(writing: Writing) -> None:
    """Interrupted tasks that anybody may do, of agents whose seats ran out on other machines.

    On its own machine an agent goes on with what it began, however long that was off.
    """
    here = machine_of(writing.holder)
    if not here:
        return  # there is one machine
    rows = writing.all(
        "SELECT * FROM tasks WHERE state = 'blocked' AND resumable AND open_to_all AND assignee IN"
        " (SELECT agent FROM seats WHERE lease_us <= ? AND substr(holder, 1, ?) <> ?)",
        (writing.steady_us, len(here) + 1, f"{here}/"),
        hold="skip",
    )
    for row in rows:
        task = task_of(row)
        writing.run("UPDATE tasks SET assignee = NULL, run = NULL WHERE id = ?", (task.id,))
        record(writing, task, "assignee", RUNTIME, f"{task.assignee} -> anybody: its machine is gone")
        queue(writing, task.id)
