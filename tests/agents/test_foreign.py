"""What foreign agents hand in, on both engines of the books: once a message, within the operator's bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import office

from artoo.agents.board.next_task import Allocation
from artoo.agents.board.reviews import Reviews
from artoo.agents.board.rows import TaskClaim
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.foreign.foreign_tasks import Foreign, ForeignRequest
from artoo.agents.foreign.messages import MORE_ASKED, MOST_MESSAGES, ForeignMessage
from artoo.agents.foreign.push_targets import MOST_DUE, MOST_TARGETS, ForeignPost, Target
from artoo.agents.foreign.settings import Peer
from artoo.contracts.agents import OPERATOR, BoardState, TaskMoved, TrustLevel
from artoo.contracts.errors import ForeignRefused, QuotaSpent
from artoo.testing.ids import SequentialIds
from board_work import take

pytestmark = pytest.mark.usefixtures("engine")


async def test_a_message_asks_once_and_within_bounds(tmp_path: Path) -> None:
    """The same message again is the same task; another text under its id, and a task too many, are refused."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        bounds = Peer(open=2, calls=7, money=0.5)
        first, new = await foreign.accept("bob", ForeignRequest("m1", "", "count the files"), bounds)
        again, fresh = await foreign.accept("bob", ForeignRequest("m1", "", "count the files"), bounds)
        assert (new, fresh, again.task.id) == (True, False, first.task.id)
        with pytest.raises(ForeignRefused, match="said something else"):
            await foreign.accept("bob", ForeignRequest("m1", "", "remove the files"), bounds)
        await foreign.accept("bob", ForeignRequest("m2", "", "and the lines"), bounds)
        with pytest.raises(ForeignRefused, match="2 at a time"):
            await foreign.accept("bob", ForeignRequest("m3", "", "and the words"), bounds)
        spendable = await foreign.spendable(first.task.id)
        assert spendable is not None and (spendable.calls, spendable.tokens, spendable.money) == (7, None, 0.5)
        assert await foreign.get("eve", "", first.task.id) is None
        listed = await foreign.list("bob", "", limit=5)
        assert [one.messages for one in listed] == [
            (ForeignMessage("m2", "and the lines"),),
            (ForeignMessage("m1", "count the files"),),
        ]
        cancelled = await foreign.cancel("bob", "", first.task.id)
        assert (
            cancelled is not None and cancelled.task.state is BoardState.CANCELLED and cancelled.ended is not None
        )


async def test_what_waits_for_the_operator_fills_no_quota(tmp_path: Path) -> None:
    """A task that is handed in, and that nobody but the operator may review, leaves room for the next one."""
    async with office(tmp_path) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        task = (await foreign.accept("bob", ForeignRequest("m1", "", "one", "dot"), Peer(open=1)))[0].task
        with pytest.raises(QuotaSpent, match="allows 1 at a time"):
            await foreign.accept("bob", ForeignRequest("m2", "", "two"), Peer(open=1))
        merges = Reviews(opened.database, SequentialIds(), SEED_POLICIES)
        await merges.submit(await take(opened.database, task.id, "dot"), "done")
        await opened.board.set_reviewer(task.id, OPERATOR, OPERATOR)
        await foreign.accept("bob", ForeignRequest("m2", "", "two"), Peer(open=1))


async def test_who_could_review_a_foreign_task_leaves_the_work_to_others(tmp_path: Path) -> None:
    """What a reviewer did itself would wait for a person. Where no one else is there, the reviewer takes it."""
    async with office(tmp_path) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        task = (await foreign.accept("bob", ForeignRequest("m1", "", "one"), Peer()))[0].task
        allocation = Allocation(opened.database, SequentialIds())
        assert await allocation.next("dot") is None
        for record in await opened.registry.list():
            if record.trust is not TrustLevel.SENIOR:
                await opened.registry.pause(record.name, OPERATOR)
        claim = await allocation.next("dot")
        assert isinstance(claim, TaskClaim) and claim.task.id == task.id


async def test_more_is_asked_before_it_is_done(tmp_path: Path) -> None:
    """A message to a task that waits grows its text; it counts in the day, comes once, and is its sender's."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        bounds = Peer(day=3)
        first, _ = await foreign.accept("bob", ForeignRequest("m1", "", "count the files"), bounds)
        for _ in range(2):
            more = await foreign.more("bob", first.task.id, ForeignRequest("m2", "", "and the lines"), bounds)
            assert more is not None and more.task.text == "count the files\n\nand the lines"
            assert [said.message for said in more.messages] == ["m1", "m2"]
        assert await foreign.more("eve", first.task.id, ForeignRequest("m3", "", "and stop"), bounds) is None
        other, _ = await foreign.accept("bob", ForeignRequest("m3", "", "something else"), bounds)
        with pytest.raises(ForeignRefused, match="for another task"):
            await foreign.more("bob", first.task.id, ForeignRequest("m3", "", "something else"), bounds)
        with pytest.raises(ForeignRefused, match="allows 3"):
            await foreign.more("bob", first.task.id, ForeignRequest("m4", "", "and the words"), bounds)
        with pytest.raises(ForeignRefused, match="20,000"):
            await foreign.more("bob", first.task.id, ForeignRequest("m5", "", "x" * 19_990), Peer())
        await foreign.cancel("bob", "", other.task.id)
        with pytest.raises(ForeignRefused, match="over"):
            await foreign.more("bob", other.task.id, ForeignRequest("m6", "", "once more"), Peer())


async def test_work_without_the_last_message_is_done_again(tmp_path: Path) -> None:
    """What a run did not know of is asked of the next one: after handing in, after failing, after a resumed run."""
    async with office(tmp_path) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        merges, work = Reviews(opened.database, SequentialIds(), SEED_POLICIES), opened.board.work
        task = (await foreign.accept("bob", ForeignRequest("m1", "", "one", "dot"), Peer()))[0].task

        async def says(number: int) -> None:
            assert await foreign.more("bob", task.id, ForeignRequest(f"m{number}", "", str(number), "dot"), Peer())

        claim = await take(opened.database, task.id, "dot")
        await work.began(claim, "run one")
        await says(2)
        await work.give_back(claim, "stopped")
        claim = await take(opened.database, task.id, "dot")
        await work.began(claim, "run one")  # resumed: it was told "one" and no more
        back, review = await merges.submit(claim, "done")
        assert (back.state, back.text, review) == (BoardState.PENDING, "one\n\n2", True)
        claim = await take(opened.database, task.id, "dot")
        await work.began(claim, "run two")
        await says(3)
        failed = await work.fail(claim, "impossible")
        assert (failed.state, failed.run) == (BoardState.BLOCKED, None)
        claim = await take(opened.database, task.id, "dot")
        await work.began(claim, "run three")
        waits, _ = await merges.submit(claim, "done")
        assert waits.state is BoardState.REVIEW
        await says(4)
        assert (await opened.board.get(task.id)).state is BoardState.PENDING
        claim = await take(opened.database, task.id, "dot")
        await work.began(claim, "run four")
        await says(5)
        await work.block(task.id, OPERATOR, "mine")
        await opened.board.assign(task.id, OPERATOR, OPERATOR)
        done, _ = await merges.submit(await take(opened.database, task.id, OPERATOR), "by hand")
        assert done.state is BoardState.REVIEW
        moves = [one for one in await opened.board.log(task.id) if isinstance(one, TaskMoved)]
        again = [one for one in moves if one.reason == MORE_ASKED]
        assert {one.actor for one in again} == {"a2a:bob"} and len(again) == 3


async def test_a_task_has_so_many_messages(tmp_path: Path) -> None:
    """The last message that a task may have is taken, the next is refused, and changes nothing."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        task = (await foreign.accept("bob", ForeignRequest("m0", "", "0"), Peer(day=100)))[0].task
        for number in range(1, MOST_MESSAGES):
            await foreign.more("bob", task.id, ForeignRequest(f"m{number}", "", str(number)), Peer(day=100))
        before = (await opened.board.get(task.id)).text
        with pytest.raises(ForeignRefused, match=f"{MOST_MESSAGES} messages"):
            await foreign.more("bob", task.id, ForeignRequest("more", "", "more"), Peer(day=100))
        assert (await opened.board.get(task.id)).text == before


async def test_targets_are_told_what_they_do_not_know(tmp_path: Path) -> None:
    """A target is due until it was told the latest move, also after it was replaced."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        post = ForeignPost(opened.database)
        task, _ = await foreign.accept("bob", ForeignRequest("m1", "c", "count the files"), Peer())
        for text in ("https://old.example", "https://bob.example"):
            await post.keep(Target(task.task.id, "p", text, 0))
        (due,) = await post.due()
        assert (due.text, due.position) == ("https://bob.example", task.position)
        await post.told(due)
        assert await post.due() == ()
        await opened.board.cancel(task.task.id, OPERATOR)
        (due,) = await post.due()
        assert due.told == task.position < due.position
        assert await post.forget(task.task.id, "p") and not await post.forget(task.task.id, "p")


async def test_one_agents_targets_hold_up_no_others(tmp_path: Path) -> None:
    """However many targets of one foreign agent wait, another's is due too."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        post = ForeignPost(opened.database)
        for number in range(MOST_DUE // MOST_TARGETS + 1):
            task, _ = await foreign.accept("bob", ForeignRequest(f"m{number}", "", "count"), Peer(open=100))
            for name in range(MOST_TARGETS):
                await post.keep(Target(task.task.id, f"p{name}", "", 0))
        task, _ = await foreign.accept("eve", ForeignRequest("m1", "", "count"), Peer())
        await post.keep(Target(task.task.id, "p", "", 0))
        due = await post.due()
        assert len(due) == MOST_DUE + 1 and due[-1].board_task == task.task.id
