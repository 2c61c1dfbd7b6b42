"""Submissions whose files wait: the board's side of what is merged between hand-in and completion."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import Office, office

from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import MOST_SUBMISSIONS
from artoo.agents.board.rules import SEED_POLICIES
from artoo.contracts.agents import (
    OPERATOR,
    POLICY,
    RUNTIME,
    BoardState,
    BoardTask,
    Complexity,
    TaskChanged,
    TaskMoved,
)
from artoo.contracts.errors import ActorRefused, ClaimLost, MoveRefused
from artoo.runtime.app.system import UuidIds
from board_work import take

pytestmark = pytest.mark.usefixtures("engine")

S = BoardState


def merges_of(opened: Office) -> Reviews:
    """The part that is looked at."""
    return Reviews(opened.database, UuidIds(), SEED_POLICIES)


async def handed_in(opened: Office, name: str, complexity: Complexity | None = None) -> tuple[BoardTask, bool]:
    """A task that `name` has submitted, and whether somebody must look at it."""
    task = await opened.board.add("x", OPERATOR, assignee=name, complexity=complexity)
    claim = await take(opened.database, task.id, name)
    return await merges_of(opened).submit(claim, "done")


@pytest.mark.parametrize(
    ("name", "complexity", "review"),
    [
        ("ada", Complexity.SIMPLE, True),
        ("bob", Complexity.SIMPLE, False),
        ("cyd", Complexity.COMPLEX, False),
        ("cyd", Complexity.CRITICAL, True),
        ("dot", None, False),
        (OPERATOR, None, False),
    ],
)
async def test_handed_in_is_never_complete(
    tmp_path: Path, name: str, complexity: Complexity | None, review: bool
) -> None:
    """Whatever trust says, a submission stands in review; what trust leaves unreviewed passes as the policy's."""
    async with office(tmp_path) as opened:
        task, looked_at = await handed_in(opened, name, complexity)
        assert task.state is S.REVIEW and looked_at is review
        assert await merges_of(opened).passes(task.id) is not review
        if review:
            with pytest.raises(MoveRefused, match="must be reviewed"):
                await merges_of(opened).pass_by_policy(task.id, 1)
            return
        done = await merges_of(opened).pass_by_policy(task.id, 1)
        assert done.state is S.COMPLETED
        last = (await opened.board.log(task.id))[-1]
        assert isinstance(last, TaskMoved) and last.actor == POLICY and last.by_policy
        assert "demands no review" in last.reason


async def test_what_passes_is_not_reviewed(tmp_path: Path) -> None:
    """While the policy is about to pass a submission no agent begins to review it; the operator may decide."""
    async with office(tmp_path) as opened:
        task, _ = await handed_in(opened, "bob", Complexity.SIMPLE)
        assert await opened.allocation.peek("dot") is None
        with pytest.raises(ActorRefused):
            await opened.board.reviews.take(task.id, "dot")
        assert (await opened.board.reviews.approve(task.id, OPERATOR)).state is S.COMPLETED


async def test_left_to_the_operator(tmp_path: Path) -> None:
    """The submission stays in review for the operator alone, with the reason on record; the next one is for whoever
    reviewed before."""
    async with office(tmp_path) as opened:
        merges = merges_of(opened)
        task, _ = await handed_in(opened, "ada")
        await opened.board.set_reviewer(task.id, "eve", OPERATOR)
        left = await merges.leave_to_operator(task.id, 1, "it overwrites a.txt")
        assert await merges.leave_to_operator(task.id, 1, "it overwrites a.txt") == left
        assert left.state is S.REVIEW and left.reviewer == OPERATOR
        changes = [one for one in await opened.board.log(task.id) if isinstance(one, TaskChanged)]
        assert [one.detail for one in changes if one.actor == RUNTIME] == ["eve -> operator: it overwrites a.txt"]
        assert await opened.allocation.peek("eve") is None
        with pytest.raises(ActorRefused):
            await opened.board.reviews.approve(task.id, "eve")
        await opened.board.reviews.reject(task.id, OPERATOR, "leave a.txt alone")
        claim = await take(opened.database, task.id, "ada")
        again, _ = await merges.submit(claim, "done")
        assert again.reviewer == "eve"


async def test_sent_back_until_the_operator_decides(tmp_path: Path) -> None:
    """What cannot be merged goes back with the reason, attributed to artoo; the fifth time it stays rejected."""
    async with office(tmp_path) as opened:
        merges = merges_of(opened)
        task, _ = await handed_in(opened, "ada")
        for number in range(1, MOST_SUBMISSIONS):
            sent = await merges.send_back(task.id, number, "a.txt was changed")
            assert sent.state is S.PENDING and sent.notes[-1] == "runtime: a.txt was changed"
            claim = await take(opened.database, task.id, "ada")
            await merges.submit(claim, "done")
        assert (await merges.send_back(task.id, MOST_SUBMISSIONS, "again")).state is S.REJECTED


async def test_another_submission_is_another_matter(tmp_path: Path) -> None:
    """What is said about a submission that does not wait any more is refused, and changes nothing."""
    async with office(tmp_path) as opened:
        merges = merges_of(opened)
        task, _ = await handed_in(opened, "dot")
        with pytest.raises(ClaimLost):
            await merges.pass_by_policy(task.id, 2)
        with pytest.raises(ClaimLost):
            await merges.send_back(task.id, 2, "no")
        await merges.pass_by_policy(task.id, 1)
        with pytest.raises(MoveRefused):
            await merges.leave_to_operator(task.id, 1, "late")
