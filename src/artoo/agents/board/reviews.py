"""The reviewer's side of the board (submit, review, merge): nobody's work is complete before a review passed it."""

from __future__ import annotations

from artoo.agents.board.rows import (
    ANYBODY,
    TaskClaim,
    add_note,
    demanded,
    find,
    find_row,
    lease,
    move,
    mover_of,
    task_of,
    try_again,
)
from artoo.agents.board.rules import Mover, Policies, check_reviewer
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Row, Writing
from artoo.contracts.agents import BoardState, BoardTask
from artoo.contracts.errors import ActorRefused, ClaimLost, MoveRefused
from artoo.ports.ids import Ids

REVIEW_LEASE_SECONDS = 60.0


class Reviews:
    """See Board. `submission` is the number of the submission that the reviewer saw; a later one is refused."""

    def __init__(self, database: Database, ids: Ids, policies: Policies) -> None:
        self._database = database
        self._ids = ids
        self._policies = policies

    async def take(self, task_id: str, actor: str, *, lease_seconds: float = REVIEW_LEASE_SECONDS) -> TaskClaim:
        """Begins a review, so that no other agent reviews the same; the operator always may. Renew by `work`."""
        token = self._ids.new()
        return await self._database.write(
            lambda writing: take_review_in(
                writing, self._policies, task_id, actor, token, seconds_us(lease_seconds)
            )
        )

    async def let_go(self, claim: TaskClaim) -> None:
        """Ends a review without a verdict. A claim that is over already is no error."""

        def work(writing: Writing) -> None:
            writing.run(
                "UPDATE tasks SET claim = NULL, claimant = NULL, holder = NULL, lease_us = NULL"
                " WHERE id = ? AND claim = ? AND epoch = ?",
                (claim.task.id, claim.token, claim.epoch),
            )
            writing.arrived(ANYBODY)

        await self._database.write(work)

    async def approve(
        self, task_id: str, actor: str, reason: str = "", *, submission: int | None = None
    ) -> BoardTask:
        """From review to completed."""

        def work(writing: Writing) -> BoardTask:
            task = self._reviewed(writing, task_id, actor, submission)
            return move(writing, task, BoardState.COMPLETED, actor, reason or "approved")

        return await self._database.write(work)

    async def reject(self, task_id: str, actor: str, reasons: str, *, submission: int | None = None) -> BoardTask:
        """From review through rejected to pending, with the reasons in the notes.

        The fifth submission that is rejected stays rejected: retry and cancel are the operator's.
        """
        if not reasons.strip():
            raise MoveRefused(f"Task {task_id} cannot be rejected without reasons: its worker needs to know them.")

        def work(writing: Writing) -> BoardTask:
            task = self._reviewed(writing, task_id, actor, submission)
            add_note(writing, task, f"{actor}: {reasons}")
            task = move(writing, task, BoardState.REJECTED, actor, reasons)
            return try_again(writing, task, actor)

        return await self._database.write(work)

    def _reviewed(self, writing: Writing, task_id: str, actor: str, submission: int | None) -> BoardTask:
        """The task that waits for this verdict."""
        row = find_row(writing, task_id)
        task, mover = task_of(row), mover_of(writing, actor)
        check_waiting(task)
        check_reviewer(self._policies, task, mover, demanded=demanded(writing, self._policies, task))
        _check_free(row, mover, writing.steady_us)
        if submission is not None and submission != task.submission:
            raise ClaimLost(
                f"Task {task_id}: what was reviewed is submission {submission}, what waits is {task.submission};"
                " look at that one."
            )
        return task


def take_review_in(
    writing: Writing, policies: Policies, task_id: str, actor: str, token: str, lease_us: int
) -> TaskClaim:
    """`Reviews.take` within a transaction."""
    row = find_row(writing, task_id)
    task, mover = task_of(row), mover_of(writing, actor)
    check_waiting(task)
    check_reviewer(policies, task, mover, demanded=demanded(writing, policies, task))
    _check_free(row, mover, writing.steady_us)
    epoch = lease(writing, task_id, token, actor, None if mover.is_operator else lease_us)
    return TaskClaim(find(writing, task_id), token, actor, epoch)


def check_waiting(task: BoardTask) -> None:
    """Raise MoveRefused unless the task waits for a review."""
    if task.state is not BoardState.REVIEW:
        raise MoveRefused(f"Task {task.id} is {task.state.value}; only what is in review can be reviewed.")


def _check_free(row: Row, mover: Mover, steady_us: int) -> None:
    """Raises ActorRefused while another agent reviews. A person is not kept waiting."""
    if mover.is_operator or row["claimant"] in (None, mover.name):
        return
    if row["lease_us"] is None or row["lease_us"] > steady_us:
        raise ActorRefused(f"Task {row['id']} is being reviewed by {row['claimant']}; leave it to them.")
