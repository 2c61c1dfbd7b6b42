"""Submissions whose files wait: nothing is complete before what it made is merged (submit, review, merge).

What trust leaves unreviewed stands in review too until its files are merged, whoever may approve it.
"""

from __future__ import annotations

from artoo.agents.board.add_task import record
from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.open_questions import open_questions
from artoo.agents.board.reviews import REVIEW_LEASE_SECONDS
from artoo.agents.board.rows import (
    LONGEST_SUMMARY,
    TaskClaim,
    add_note,
    check_claim,
    clipped,
    find,
    find_row,
    lease,
    move,
    mover_of,
    review_wanted,
    task_of,
    try_again,
)
from artoo.agents.board.rules import Policies, check_holder
from artoo.agents.foreign.messages import done_again, more_asked
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Writing
from artoo.contracts.agents import OPERATOR, POLICY, RUNTIME, BoardState, BoardTask
from artoo.contracts.errors import ClaimLost, MoveRefused

_LEFT = "left to the operator: "


class Merges:
    """See Board. Every method raises MoveRefused, ActorRefused, ClaimLost or ActivityStoreError."""

    def __init__(self, database: Database, policies: Policies) -> None:
        self._database = database
        self._policies = policies

    async def submit(self, claim: TaskClaim, summary: str) -> tuple[BoardTask, bool]:
        """Hands the result in, to review; True with it when somebody must look at it before it may pass.

        What a foreign agent asked for after the work had begun is not in it: then it is done again. What goes
        with a question to the operator is left to them: nobody else's yes is the answer.
        """

        def work(writing: Writing) -> tuple[BoardTask, bool]:
            row = find_row(writing, claim.task.id)
            check_claim(row, claim)
            task, submitter = task_of(row), mover_of(writing, claim.agent)
            check_holder(task, submitter, "submitted")
            writing.run(
                "UPDATE tasks SET summary = ?, submission = submission + 1, made_on = ? WHERE id = ?",
                (clipped(summary, LONGEST_SUMMARY), machine_of(writing.holder), task.id),
            )
            _give_back_reviewer(writing, task)
            task = move(writing, task, BoardState.REVIEW, claim.agent, f"submission {task.submission + 1}")
            if more_asked(writing, task, claim.agent):
                return done_again(writing, task), True
            if asked := open_questions(writing, task.id):
                return _left(writing, task, f"{claim.agent} asks: {asked[-1]}"), True
            review = review_wanted(writing, self._policies, submitter, task)
            if not review:  # no reviewer is to begin with what the policy is about to pass
                token = f"{POLICY}-{task.id}-{task.submission}"
                lease(writing, task.id, token, POLICY, seconds_us(REVIEW_LEASE_SECONDS))
            return task, review

        return await self._database.write(work)

    async def passes(self, task_id: str) -> bool:
        """Whether the trust policy lets what waits in review pass without a second pair of eyes."""

        def work(writing: Writing) -> bool:
            task = find(writing, task_id)
            return task.state is BoardState.REVIEW and self._passes(writing, task)

        return await self._database.write(work)

    async def pass_by_policy(self, task_id: str, submission: int) -> BoardTask:
        """From review to completed where trust demands no review; recorded as the policy's approval."""

        def work(writing: Writing) -> BoardTask:
            task = _waiting(writing, task_id, submission)
            if not self._passes(writing, task):
                raise MoveRefused(f"Task {task_id} must be reviewed; its submitter's trust does not let it pass.")
            reason = f"{task.assignee}'s trust level demands no review of this task"
            return move(writing, task, BoardState.COMPLETED, POLICY, reason, by_policy=True)

        return await self._database.write(work)

    async def send_back(self, task_id: str, submission: int, reasons: str) -> BoardTask:
        """From review through rejected to pending, by artoo itself: it cannot be merged as it is.

        As with reviewers, every fifth submission stays rejected until the operator decides.
        """

        def work(writing: Writing) -> BoardTask:
            task = _waiting(writing, task_id, submission)
            add_note(writing, task, f"{RUNTIME}: {reasons}")
            task = move(writing, task, BoardState.REJECTED, RUNTIME, reasons)
            return try_again(writing, task, RUNTIME)

        return await self._database.write(work)

    async def leave_to_operator(self, task_id: str, submission: int, reasons: str) -> BoardTask:
        """The submission stays in review, for the operator alone, with the reasons on record. May be repeated."""

        def work(writing: Writing) -> BoardTask:
            task = _waiting(writing, task_id, submission)
            return _left(writing, task, reasons)

        return await self._database.write(work)

    def _passes(self, writing: Writing, task: BoardTask) -> bool:
        submitter = mover_of(writing, task.assignee or RUNTIME)
        return not review_wanted(writing, self._policies, submitter, task)


def _left(writing: Writing, task: BoardTask, reasons: str) -> BoardTask:
    if task.reviewer == OPERATOR:
        return task
    writing.run(
        "INSERT INTO marks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (f"{_LEFT}{task.id}", task.reviewer or ""),
    )
    writing.run(
        "UPDATE tasks SET reviewer = ?, claim = NULL, claimant = NULL, holder = NULL, lease_us = NULL WHERE id = ?",
        (OPERATOR, task.id),
    )
    record(writing, task, "reviewer", RUNTIME, f"{task.reviewer or 'anybody'} -> {OPERATOR}: {reasons}")
    return find(writing, task.id)


def _waiting(writing: Writing, task_id: str, submission: int) -> BoardTask:
    """The submission that waits. Raises MoveRefused, or ClaimLost when it is another one by now."""
    task = find(writing, task_id)
    if task.state is not BoardState.REVIEW:
        raise MoveRefused(f"Task {task_id} is {task.state.value}; nothing of it waits to be merged.")
    if task.submission != submission:
        raise ClaimLost(f"Task {task_id}: submission {task.submission} waits by now, not {submission}.")
    return task


def _give_back_reviewer(writing: Writing, task: BoardTask) -> None:
    """A new submission is for whoever reviewed before the last one was left to the operator."""
    row = writing.one("SELECT value FROM marks WHERE name = ?", (f"{_LEFT}{task.id}",))
    if row is None:
        return
    writing.run("DELETE FROM marks WHERE name = ?", (f"{_LEFT}{task.id}",))
    if task.reviewer == OPERATOR:
        writing.run("UPDATE tasks SET reviewer = ? WHERE id = ?", (row["value"] or None, task.id))
