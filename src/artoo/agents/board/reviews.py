"""Submit, take, approve and reject reviews of board tasks, under a review lease.

No task is completed without passing review.

A submission that, by the trust policy, needs no review is also in the state review until its files are applied.
"""

from __future__ import annotations

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.rows import (
    ANYBODY,
    LONGEST_SUMMARY,
    NO_CLAIM,
    TaskClaim,
    add_note,
    check_claim,
    clipped,
    demanded,
    end_claim,
    find,
    find_row,
    give_to,
    lease,
    move,
    mover_of,
    open_questions,
    review_wanted,
    task_of,
    try_again,
)
from artoo.agents.board.rules import Mover, Policies, check_holder, check_reviewer
from artoo.agents.foreign.messages import done_again, more_asked
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import LEASE_SECONDS, seconds_us
from artoo.agents.storage.transaction import Reading, Row, Writing, marked
from artoo.contracts.agents import OPERATOR, POLICY, RUNTIME, BoardState, BoardTask
from artoo.contracts.errors import ActorRefused, ClaimLost, MoveRefused
from artoo.ports.ids import Ids

_LEFT = "left to the operator: "
_NOBODY = "-"
"""Stored as the earlier reviewer of a task that was left to the operator. It means that any agent could review the
task before."""


class Reviews(Stored):
    """The operations of reviewers. `submission`: the number of the submission that was reviewed. A method raises
    ClaimLost if a later submission is pending now."""

    def __init__(self, database: Database, ids: Ids, policies: Policies) -> None:
        super().__init__(database)
        self._ids = ids
        self._policies = policies

    @writes
    def submit(self, writing: Writing, claim: TaskClaim, summary: str) -> tuple[BoardTask, bool]:
        """Submit the result for review. Returns the task, and whether a reviewer must approve the submission.

        If a foreign agent has sent further messages since the work began, the task is done again. If the result
        contains a question to the operator, the submission is left to the operator, because no one else can answer
        it.
        """
        row = find_row(writing, claim.task.id)
        check_claim(row, claim)
        task, submitter = task_of(row), mover_of(writing, claim.agent)
        check_holder(task, submitter, "submitted")
        number = task.submission + 1
        summary, here = clipped(summary, LONGEST_SUMMARY), machine_of(writing.holder)
        writing.change("tasks", task.id, summary=summary, submission=number, made_on=here)
        _give_back_reviewer(writing, task)
        task = move(writing, task, BoardState.REVIEW, claim.agent, f"submission {number}")
        if more_asked(writing, task, claim.agent):
            return done_again(writing, task), True
        if asked := open_questions(writing, task.id):
            return _left(writing, task, f"{claim.agent} asks: {asked[-1]}"), True
        review = review_wanted(writing, self._policies, submitter, task)
        # Keeps reviewers from starting on a submission that the policy will approve in a moment.
        if not review:
            token = f"{POLICY}-{task.id}-{task.submission}"
            lease(writing, task.id, token, POLICY, seconds_us(LEASE_SECONDS))
        return task, review

    @writes
    def take(
        self, writing: Writing, task_id: str, actor: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> TaskClaim:
        """Claim a review, so that no other agent reviews the same submission. The operator can always claim it. The
        claim is renewed by `work.renew`."""
        token = self._ids.new()
        return take_review_in(writing, self._policies, task_id, actor, token, seconds_us(lease_seconds))

    @writes
    def let_go(self, writing: Writing, claim: TaskClaim) -> None:
        """End a review without a verdict. A claim that has already ended is ignored."""
        writing.run(
            f"UPDATE tasks SET {NO_CLAIM} WHERE id = ? AND claim = ? AND epoch = ?",
            (claim.task.id, claim.token, claim.epoch),
        )
        writing.arrived(ANYBODY)

    @writes
    def approve(
        self, writing: Writing, task_id: str, actor: str, reason: str = "", *, submission: int | None = None
    ) -> BoardTask:
        """Move a task from review to completed."""
        task = self._reviewed(writing, task_id, actor, submission)
        return move(writing, task, BoardState.COMPLETED, actor, reason or "approved")

    @writes
    def reject(
        self, writing: Writing, task_id: str, actor: str, reasons: str, *, submission: int | None = None
    ) -> BoardTask:
        """Move a task from review through rejected to pending, and add the reasons to its notes.

        After the last allowed submission (`MOST_SUBMISSIONS`) the task stays rejected, and the operator decides
        about retry or cancel.
        """
        if not reasons.strip():
            raise MoveRefused(f"Task {task_id} cannot be rejected without reasons: its worker needs to know them.")
        return _sent_back(writing, self._reviewed(writing, task_id, actor, submission), actor, reasons)

    @reads
    def passes(self, reading: Reading, task_id: str) -> bool:
        """Check whether the trust policy approves this submission without a review."""
        task = find(reading, task_id)
        return task.state is BoardState.REVIEW and self._passes(reading, task)

    @writes
    def pass_by_policy(self, writing: Writing, task_id: str, submission: int) -> BoardTask:
        """Complete a task whose submission needs no review at the submitter's level of trust. This is recorded as
        an approval by the policy."""
        task = _waiting(find(writing, task_id), submission)
        if not self._passes(writing, task):
            raise MoveRefused(f"Task {task_id} must be reviewed; its submitter's trust does not let it pass.")
        reason = f"{task.assignee}'s trust level demands no review of this task"
        return move(writing, task, BoardState.COMPLETED, POLICY, reason, by_policy=True)

    @writes
    def send_back(self, writing: Writing, task_id: str, submission: int, reasons: str) -> BoardTask:
        """Reject a submission that cannot be applied, and move the task back to pending."""
        return _sent_back(writing, _waiting(find(writing, task_id), submission), RUNTIME, reasons)

    @writes
    def leave_to_operator(self, writing: Writing, task_id: str, submission: int, reasons: str) -> BoardTask:
        """Leave a submission in review so that only the operator can review it, and record the reasons.
        Idempotent."""
        return _left(writing, _waiting(find(writing, task_id), submission), reasons)

    def _passes(self, reading: Reading, task: BoardTask) -> bool:
        submitter = mover_of(reading, task.assignee or RUNTIME)
        return not review_wanted(reading, self._policies, submitter, task)

    def _reviewed(self, writing: Writing, task_id: str, actor: str, submission: int | None) -> BoardTask:
        """Return the task if `actor` may decide this submission now."""
        task = _reviewable(writing, self._policies, find_row(writing, task_id), mover_of(writing, actor))
        return task if submission is None else _waiting(task, submission)


def take_review_in(
    writing: Writing, policies: Policies, task_id: str, actor: str, token: str, lease_us: int
) -> TaskClaim:
    """Claim a review within a transaction, as `Reviews.take` does."""
    mover = mover_of(writing, actor)
    _reviewable(writing, policies, find_row(writing, task_id), mover)
    epoch = lease(writing, task_id, token, actor, None if mover.is_operator else lease_us)
    return TaskClaim(find(writing, task_id), token, actor, epoch)


def check_waiting(task: BoardTask) -> None:
    """Raise MoveRefused unless the task is in review."""
    if task.state is not BoardState.REVIEW:
        raise MoveRefused(f"Task {task.id} is {task.state.value}; only what is in review can be reviewed.")


def _waiting(task: BoardTask, submission: int) -> BoardTask:
    """Return the task. Raises MoveRefused if it is not in review, and ClaimLost if another submission is
    pending."""
    check_waiting(task)
    if submission != task.submission:
        raise ClaimLost(
            f"Task {task.id}: what was reviewed is submission {submission}, what waits is {task.submission};"
            " look at that one."
        )
    return task


def _reviewable(writing: Writing, policies: Policies, row: Row, mover: Mover) -> BoardTask:
    """Return the task if `mover` may review it at this time. Raises ActorRefused if not, for example while another
    agent reviews it.

    The operator may review at any time.
    """
    task = task_of(row)
    check_waiting(task)
    check_reviewer(policies, task, mover, demanded=demanded(writing, policies, task))
    # A claim without an expiry belongs to the operator. It holds until the operator decides.
    held = row["lease_us"] is None or row["lease_us"] > writing.steady_us
    if held and not mover.is_operator and row["claimant"] not in (None, mover.name):
        raise ActorRefused(f"Task {task.id} is being reviewed by {row['claimant']}; leave it to them.")
    return task


def _sent_back(writing: Writing, task: BoardTask, actor: str, reasons: str) -> BoardTask:
    add_note(writing, task, f"{actor}: {reasons}")
    return try_again(writing, move(writing, task, BoardState.REJECTED, actor, reasons), actor)


def _left(writing: Writing, task: BoardTask, reasons: str) -> BoardTask:
    if task.reviewer == OPERATOR:
        return task
    writing.mark(f"{_LEFT}{task.id}", task.reviewer or _NOBODY)
    end_claim(writing, task.id)
    give_to(writing, task, "reviewer", OPERATOR, RUNTIME, reasons)
    return find(writing, task.id)


def _give_back_reviewer(writing: Writing, task: BoardTask) -> None:
    """Restore the reviewer that the task had before its last submission was left to the operator."""
    before = marked(writing, f"{_LEFT}{task.id}")
    # An earlier version stored an empty value for tasks that any agent could review.
    gone = writing.run("DELETE FROM marks WHERE name = ?", (f"{_LEFT}{task.id}",))
    if gone and task.reviewer == OPERATOR:
        writing.change("tasks", task.id, reviewer=None if before in ("", _NOBODY) else before)
