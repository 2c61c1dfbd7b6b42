"""The board, call by call: what is kept, who is refused, and that nothing sticks."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import Office, Stream, office

from artoo.agents.board.rows import MOST_SUBMISSIONS, TaskClaim
from artoo.agents.board.worker import MOST_INTERRUPTIONS
from artoo.agents.mail.outbox import Outbox
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
from artoo.testing import FakeClock
from board_work import hand_in, take

pytestmark = pytest.mark.usefixtures("engine")

S = BoardState


async def moves(opened: Office, task: BoardTask) -> list[tuple[str, str, str]]:
    """(before, after, actor) of every transition."""
    log = await opened.board.log(task.id)
    return [
        (record.before.value if record.before else "", record.after.value, record.actor)
        for record in log
        if isinstance(record, TaskMoved)
    ]


async def handed_in(opened: Office, agent: str, complexity: Complexity | None = None) -> BoardTask:
    """A task that this agent has worked on and handed in."""
    task = await opened.board.add("count the files", OPERATOR, complexity=complexity, assignee=agent)
    return await hand_in(opened.database, await take(opened.database, task.id, agent), "there are 12")


async def test_a_task_goes_from_pending_to_archived(tmp_path: Path) -> None:
    """The whole way: each step kept with the state before it, published under the name that the log has."""
    stream = Stream()
    async with office(tmp_path) as opened:
        task = await handed_in(opened, "ada")
        assert (task.state, task.summary, task.submission) == (S.REVIEW, "there are 12", 1)
        rejected = await opened.board.reviews.reject(task.id, "dot", "name them too")
        assert (rejected.state, rejected.notes) == (S.PENDING, ("dot: name them too",))
        await hand_in(opened.database, await take(opened.database, task.id, "ada"), "a, b")
        await opened.board.reviews.approve(task.id, "dot")
        await opened.board.archive(task.id, OPERATOR)
        assert await moves(opened, task) == [
            ("", "pending", OPERATOR),
            ("pending", "in_progress", "ada"),
            ("in_progress", "review", "ada"),
            ("review", "rejected", "dot"),
            ("rejected", "pending", "dot"),
            ("pending", "in_progress", "ada"),
            ("in_progress", "review", "ada"),
            ("review", "completed", "dot"),
            ("completed", "archived", OPERATOR),
        ]
        await Outbox(opened.database, stream).drain()
        published = [record for record in stream.records if isinstance(record, TaskMoved)]
        assert published == list(await opened.board.log(task.id))
        assert await opened.board.list() == ()
        assert len(await opened.board.list([S.ARCHIVED])) == 1


async def test_nobody_without_the_right_approves(tmp_path: Path) -> None:
    """Juniors, strangers, artoo itself and its policy are refused; the task stays in review."""
    async with office(tmp_path) as opened:
        task = await handed_in(opened, "ada")
        for actor in ("ada", "bob", "cyd", RUNTIME, POLICY, "nobody"):
            with pytest.raises(ActorRefused):
                await opened.board.reviews.approve(task.id, actor)
            with pytest.raises(ActorRefused):
                await opened.board.reviews.reject(task.id, actor, "no")
        assert (await opened.board.get(task.id)).state is S.REVIEW
        assert (await opened.board.reviews.approve(task.id, OPERATOR)).state is S.COMPLETED


async def test_trust_is_what_it_is_when_the_work_is_handed_in(tmp_path: Path) -> None:
    """An agent that was demoted while it worked is reviewed."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR, complexity=Complexity.SIMPLE)
        claim = await take(opened.database, task.id, "bob")
        await opened.registry.set_trust("bob", TrustLevel.PROBATION, OPERATOR)
        assert (await hand_in(opened.database, claim, "done")).state is S.REVIEW


async def test_agents_decide_neither_trust_nor_complexity_nor_whose_it_is(tmp_path: Path) -> None:
    """Each such attempt of an agent is refused and says whose decision it is."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", "ada")
        calls = [
            opened.board.set_complexity(task.id, Complexity.SIMPLE, "dot"),
            opened.board.set_priority(task.id, Priority.CRITICAL, "dot"),
            opened.board.assign(task.id, "ada", "dot"),
            opened.board.set_reviewer(task.id, "dot", "ada"),
            opened.board.cancel(task.id, "ada"),
            opened.board.archive(task.id, "ada"),
            opened.board.add("y", "ada", complexity=Complexity.SIMPLE),
            opened.registry.set_trust("ada", TrustLevel.SENIOR, "ada"),
            opened.registry.resume("ada", "dot"),
        ]
        for call in calls:
            with pytest.raises(ActorRefused, match="operator"):
                await call
        with pytest.raises(ActorRefused, match="approves nothing"):
            await opened.board.set_reviewer(task.id, "ada", OPERATOR)
        assert await opened.board.get(task.id) == task


async def test_what_is_changed_is_kept_and_attributed(tmp_path: Path) -> None:
    """Priority, complexity and people: who changed what from what to what."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR)
        await opened.board.set_priority(task.id, Priority.CRITICAL, OPERATOR)
        await opened.board.set_complexity(task.id, Complexity.SIMPLE, POLICY)
        await opened.board.assign(task.id, "ada", OPERATOR)
        await opened.board.set_reviewer(task.id, "dot", OPERATOR)
        changes = [record for record in await opened.board.log(task.id) if isinstance(record, TaskChanged)]
        assert [(change.change, change.actor, change.detail) for change in changes] == [
            ("priority", OPERATOR, "standard -> critical"),
            ("complexity", POLICY, "unset -> simple"),
            ("assignee", OPERATOR, "anybody -> ada"),
            ("reviewer", OPERATOR, "anybody -> dot"),
        ]


@pytest.mark.parametrize(
    ("start", "through"), [("in_progress", "blocked"), ("review", "rejected"), ("pending", None)]
)
async def test_cancelling_goes_the_way_there_is(tmp_path: Path, start: str, through: str | None) -> None:
    """Work is stopped through blocked, a submission through rejected, by the operator; the claim is over."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR)
        claim: TaskClaim | None = None
        if start != "pending":
            claim = await take(opened.database, task.id, "ada")
        if start == "review" and claim is not None:
            await hand_in(opened.database, claim, "done")
        assert (await opened.board.cancel(task.id, OPERATOR, "not needed")).state is S.CANCELLED
        ways = [(before, after) for before, after, actor in await moves(opened, task) if actor == OPERATOR][1:]
        assert ways == ([(start, through), (through, "cancelled")] if through else [(start, "cancelled")])
        if claim is not None:
            with pytest.raises(ClaimLost):
                await hand_in(opened.database, claim, "late")


async def test_one_of_two_gets_a_task(tmp_path: Path) -> None:
    """The second gets nothing, nor does anybody else get a task that is somebody's."""
    async with office(tmp_path) as opened:
        await opened.board.add("anybody's", OPERATOR)
        await opened.board.add("ada's", OPERATOR, assignee="ada")
        assert isinstance(await opened.allocation.next("bob"), TaskClaim)
        assert await opened.allocation.next("bob") is None
        assert isinstance(await opened.allocation.next("ada"), TaskClaim)
        assert await opened.allocation.next("ada") is None


async def test_a_dead_process_gives_its_task_back(tmp_path: Path) -> None:
    """Through blocked, by `runtime`; the agent resumes the same run; the dead process's claim counts no more."""
    async with office(tmp_path) as opened:
        work = opened.board.work
        task = await opened.board.add("x", OPERATOR)
        claim = await take(opened.database, task.id, "ada")
        await work.began(claim, "run-1")
        assert (await work.recover(lambda _: False)).work == ()
        assert (await work.recover(lambda _: True)).work == (task.id,)
        again = await opened.allocation.next("ada")
        assert isinstance(again, TaskClaim)
        assert (again.resumed, again.task.run, again.task.state) == (True, "run-1", S.IN_PROGRESS)
        assert again.epoch == claim.epoch + 1
        for call in (
            hand_in(opened.database, claim, "late"), work.fail(claim, "x"), work.renew(claim),
            work.hold_up(claim, "x"), work.give_back(claim, "x"), work.began(claim, "run-2"),
        ):  # fmt: skip
            with pytest.raises(ClaimLost):
                await call
        assert await moves(opened, task) == [
            ("", "pending", OPERATOR),
            ("pending", "in_progress", "ada"),
            ("in_progress", "blocked", RUNTIME),
            ("blocked", "in_progress", "ada"),
        ]
        assert (await hand_in(opened.database, again, "fresh")).summary == "fresh"


async def test_a_claim_runs_out_unless_it_is_renewed(tmp_path: Path) -> None:
    """A process that hangs loses its task after the lease, one that renews never does."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened:
        work = opened.board.work
        tasks = [await opened.board.add("x", OPERATOR) for _ in range(2)]
        renewed = await take(opened.database, tasks[0].id, "ada")
        hung = await take(opened.database, tasks[1].id, "bob")
        for _ in range(4):
            clock.advance(20)
            await work.renew(renewed)
        assert (await work.recover(lambda _: False)).work == (hung.task.id,)


async def test_a_task_that_kills_its_processes_fails_in_the_end(tmp_path: Path) -> None:
    """After ten interruptions it is failed, with the reason, and may be tried again."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR)
        for _ in range(MOST_INTERRUPTIONS):
            await take(opened.database, task.id, "ada")
            await opened.board.work.recover(lambda _: True)
        failed = await opened.board.get(task.id)
        assert failed.state is S.FAILED
        assert "10th time" in failed.notes[-1]
        assert (await opened.board.retry(task.id, OPERATOR, "mind the memory")).state is S.PENDING


async def test_what_is_blocked_waits_for_the_operator(tmp_path: Path) -> None:
    """Nobody takes it before it is released; the operator's answer is in the notes of who does."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR, assignee="ada")
        claim = await take(opened.database, task.id, "ada")
        await opened.board.work.hold_up(claim, "which folder?")
        assert await opened.allocation.peek("ada") is None
        assert await opened.allocation.next("ada") is None
        with pytest.raises(ActorRefused):
            await opened.board.release(task.id, "ada")
        await opened.board.release(task.id, OPERATOR, "the first one")
        again = await opened.allocation.next("ada")
        assert isinstance(again, TaskClaim)
        assert again.task.notes == ("operator: the first one",)


async def test_two_seniors_do_not_review_the_same(tmp_path: Path) -> None:
    """One claims the review, the other is refused until its process died; the operator never waits."""
    async with office(tmp_path) as opened:
        task = await handed_in(opened, "ada")
        claim = await opened.allocation.next("dot")
        assert isinstance(claim, TaskClaim)
        assert claim.task.state is S.REVIEW
        assert await opened.allocation.next("eve") is None
        with pytest.raises(ActorRefused, match="being reviewed by dot"):
            await opened.board.reviews.approve(task.id, "eve")
        assert (await opened.board.work.recover(lambda _: True)).reviews == (task.id,)
        await opened.board.reviews.take(task.id, "eve")
        assert (await opened.board.reviews.approve(task.id, OPERATOR)).state is S.COMPLETED


async def test_a_review_is_of_the_submission_that_was_seen(tmp_path: Path) -> None:
    """What was rejected and handed in anew is not approved by who saw the first."""
    async with office(tmp_path) as opened:
        task = await handed_in(opened, "ada")
        await opened.board.reviews.reject(task.id, "dot", "no")
        await hand_in(opened.database, await take(opened.database, task.id, "ada"), "2")
        with pytest.raises(ClaimLost, match="submission 1, what waits is 2"):
            await opened.board.reviews.approve(task.id, "dot", submission=1)


async def test_rejections_have_an_end_and_reasons(tmp_path: Path) -> None:
    """A rejection without reasons is refused; the fifth stays rejected until the operator decides."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR, assignee="ada")
        for number in range(MOST_SUBMISSIONS):
            await hand_in(opened.database, await take(opened.database, task.id, "ada"), "x")
            with pytest.raises(MoveRefused, match="without reasons"):
                await opened.board.reviews.reject(task.id, "dot", "  ")
            task = await opened.board.reviews.reject(task.id, "dot", f"reason {number}")
        assert task.state is S.REJECTED
        assert (await opened.board.retry(task.id, OPERATOR)).state is S.PENDING
        assert task.notes[-1] == "dot: reason 4"


async def test_paused_and_stopped_agents_take_nothing_and_finish_what_they_have(tmp_path: Path) -> None:
    """A paused agent hands in, but gets nothing new."""
    async with office(tmp_path) as opened:
        for _ in range(2):
            await opened.board.add("x", OPERATOR)
        claim = await opened.allocation.next("ada")
        assert isinstance(claim, TaskClaim)
        await opened.registry.pause("ada", OPERATOR)
        assert await opened.allocation.next("ada") is None
        assert (await hand_in(opened.database, claim, "done")).state is S.REVIEW


@pytest.mark.parametrize("text", ["  ", "x" * 20_001])
async def test_a_text_that_is_no_task_is_refused(tmp_path: Path, text: str) -> None:
    """Empty or too long: the error says how long it may be."""
    async with office(tmp_path) as opened:
        with pytest.raises(MoveRefused, match="1 to 20000"):
            await opened.board.add(text, OPERATOR)


async def test_who_and_what_is_unknown_is_named(tmp_path: Path) -> None:
    """No such task, no such agent, nobody's task: each error names what was asked for."""
    async with office(tmp_path) as opened:
        with pytest.raises(MoveRefused, match="no task x"):
            await opened.board.get("x")
        with pytest.raises(ActorRefused, match="zoe"):
            await opened.board.add("x", "zoe")
        with pytest.raises(ActorRefused, match="zoe"):
            await opened.board.add("x", OPERATOR, assignee="zoe")
        with pytest.raises(ActorRefused, match="runtime"):
            await opened.board.add("x", OPERATOR, assignee=RUNTIME)


async def test_an_open_task_is_open_again_after_a_rejection(tmp_path: Path) -> None:
    """Who took it from the pool does not keep it; a task that was given to somebody stays theirs."""
    async with office(tmp_path) as opened:
        pool = await opened.board.add("x", OPERATOR)
        await hand_in(opened.database, await take(opened.database, pool.id, "ada"), "x")
        assert (await opened.board.reviews.reject(pool.id, "dot", "no")).assignee is None
        given = await handed_in(opened, "ada")
        assert (await opened.board.reviews.reject(given.id, "dot", "no")).assignee == "ada"


async def test_another_agent_does_not_resume_what_one_began(tmp_path: Path) -> None:
    """A task that is given away keeps its notes and loses its run."""
    async with office(tmp_path) as opened:
        task = await opened.board.add("x", OPERATOR, assignee="ada")
        claim = await take(opened.database, task.id, "ada")
        await opened.board.work.began(claim, "run-1")
        with pytest.raises(MoveRefused, match="block or reject it first"):
            await opened.board.assign(task.id, "bob", OPERATOR)
        await opened.board.work.give_back(claim, "artoo stops")
        assert (await opened.board.assign(task.id, "bob", OPERATOR)).run is None


async def test_what_is_given_back_while_others_go_on_fails_at_last(tmp_path: Path) -> None:
    """An outage or a stop fails nothing; a task that alone cannot be done is not tried for ever."""
    async with office(tmp_path) as opened:
        board, work = opened.board, opened.board.work
        task = await board.add("x", OPERATOR, assignee="ada")

        async def given_back(*, counted: bool) -> BoardState:
            return (
                await work.give_back(await take(opened.database, task.id, "ada"), "no model", counted=counted)
            ).state

        for counted in (True, False):
            for _ in range(MOST_INTERRUPTIONS + 1):
                assert await given_back(counted=counted) is BoardState.BLOCKED
        for _ in range(MOST_INTERRUPTIONS - 1):
            other = await board.add("y", OPERATOR, assignee="bob")
            await hand_in(opened.database, await take(opened.database, other.id, "bob"), "done")
            assert await given_back(counted=True) is BoardState.BLOCKED
        await handed_in(opened, "bob")
        assert await given_back(counted=True) is BoardState.FAILED
        assert "no model, for the 10th time" in (await board.get(task.id)).notes[-1]
        await board.retry(task.id, OPERATOR)
        assert await given_back(counted=True) is BoardState.BLOCKED


async def test_words_that_are_no_utf8_are_kept_as_far_as_they_can_be(tmp_path: Path) -> None:
    """Names of files come along in texts, reasons and letters; a project of such a name is refused."""
    odd = "see \udcff.txt"
    async with office(tmp_path) as opened:
        task = await opened.board.add(odd, OPERATOR, assignee="ada")
        task = await hand_in(opened.database, await take(opened.database, task.id, "ada"), odd)
        task = await opened.board.reviews.reject(task.id, "dot", odd)
        assert (task.text, task.summary, task.notes) == ("see ?.txt", "see ?.txt", ("dot: see ?.txt",))
        await opened.mailbox.send("ada", "bob", odd)
        claim = await opened.mailbox.take("bob")
        assert claim is not None
        await opened.mailbox.archive(claim, odd)
        await opened.registry.pause("ada", OPERATOR, odd)
        with pytest.raises(MoveRefused, match="no UTF-8"):
            await opened.board.add("x", OPERATOR, project="/tmp/\udcff")
        assert await Outbox(opened.database, Stream()).drain() > 0
