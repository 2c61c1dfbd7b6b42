"""An agent that retires: what others can do is given back, what they can use stays, and its name with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import office

from artoo.agents.identity.folders import create_agent, folder_of
from artoo.contracts.agents import OPERATOR, BoardState, TaskChanged
from artoo.contracts.errors import ActorRefused, ClaimLost, IdentityRefused, MailRefused
from board_work import hand_in, take

pytestmark = pytest.mark.usefixtures("engine")


async def test_its_tasks_are_given_back_and_what_it_handed_in_stays(tmp_path: Path) -> None:
    """Pending, blocked and interrupted ones are anybody's at once; a submission is still reviewed as its own, and
    anybody's when it is to be done again. A process that was at work learns that its claim is over."""
    async with office(tmp_path) as opened:
        board, registry = opened.board, opened.registry
        waits, held, works, reviewed, failed = [
            await board.add(text, OPERATOR, assignee="ada") for text in ("w", "h", "i", "r", "f")
        ]
        await board.work.hold_up(await take(opened.database, held.id, "ada"), "too large")
        working = await take(opened.database, works.id, "ada")
        await hand_in(opened.database, await take(opened.database, reviewed.id, "ada"), "done")
        await board.work.fail(await take(opened.database, failed.id, "ada"), "no way")
        given = await registry.retire("ada", OPERATOR, "no longer needed")
        assert set(given) == {waits.id, held.id, works.id}
        for task in (waits, held, works):
            now = await board.get(task.id)
            assert now.assignee is None and now.state in (BoardState.PENDING, BoardState.BLOCKED)
        with pytest.raises(ClaimLost):
            await board.work.renew(working)
        with pytest.raises(ClaimLost):
            await hand_in(opened.database, working, "too late")
        taken = await take(opened.database, works.id, "bob")
        assert taken.resumed and taken.task.run is None
        changes = [one for one in await board.log(works.id) if isinstance(one, TaskChanged)]
        assert [(one.change, one.actor, one.detail) for one in changes] == [
            ("assignee", OPERATOR, "ada -> anybody: ada is retired")
        ]
        assert (await board.get(reviewed.id)).assignee == "ada"
        assert (await board.reviews.reject(reviewed.id, OPERATOR, "again")).assignee is None
        assert (await board.retry(failed.id, OPERATOR)).assignee is None
        assert await registry.retire("ada", OPERATOR) == ()


async def test_a_retired_reviewer_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A review that it had begun is free, and a task that named it as its reviewer names nobody."""
    async with office(tmp_path) as opened:
        board = opened.board
        task = await board.add("text", OPERATOR, assignee="ada")
        await board.set_reviewer(task.id, "dot", OPERATOR)
        await hand_in(opened.database, await take(opened.database, task.id, "ada"), "done")
        claim = await board.reviews.take(task.id, "dot")
        await opened.registry.retire("dot", OPERATOR)
        with pytest.raises(ClaimLost):
            await board.work.renew(claim)
        assert (await board.reviews.approve(task.id, "eve")).state is BoardState.COMPLETED
        other = await board.add("text", OPERATOR)
        with pytest.raises(ActorRefused, match="retired"):
            await board.set_reviewer(other.id, "dot", OPERATOR)


async def test_its_letters_are_kept_and_nothing_new_is_its(tmp_path: Path) -> None:
    """Letters stay unread and readable, the one in hand too; new letters and tasks are refused by name."""
    async with office(tmp_path) as opened:
        mailbox = opened.mailbox
        await mailbox.send(OPERATOR, "ada", "first")
        await mailbox.send(OPERATOR, "ada", "second")
        claim = await mailbox.take("ada")
        assert claim is not None
        await opened.registry.retire("ada", OPERATOR)
        with pytest.raises(ClaimLost):
            await mailbox.answer(claim, "an answer")
        assert [(kept.mail.text, kept.held) for kept in await mailbox.list("ada", "inbox")] == [
            ("first", False),
            ("second", False),
        ]
        with pytest.raises(MailRefused, match="retired; known: operator, bob"):
            await mailbox.send("bob", "ada", "are you there?")
        with pytest.raises(MailRefused, match="retired"):
            await opened.asking.ask("bob", "ada", "are you there?")
        with pytest.raises(ActorRefused, match="retired"):
            await opened.board.add("text", OPERATOR, assignee="ada")
        await opened.board.add("anybody's", OPERATOR)
        assert await opened.allocation.next("ada") is None
        with pytest.raises(ActorRefused, match="only the operator"):
            await opened.registry.retire("bob", "cyd")


async def test_accepting_takes_it_back(tmp_path: Path) -> None:
    """With its letters; it is read anew, and no prompt is made before that. Tasks are not its again."""
    async with office(tmp_path, team=False) as opened:
        registry = opened.registry
        identity = create_agent(tmp_path, "ada", role="clerk", persona="exact")
        folder = folder_of(tmp_path, "ada")
        await registry.register("ada", OPERATOR, sha256=identity.sha256)
        await opened.mailbox.send(OPERATOR, "ada", "first")
        task = await opened.board.add("text", OPERATOR, assignee="ada")
        await registry.retire("ada", OPERATOR)
        assert (await registry.get("ada")).retired
        with pytest.raises(IdentityRefused, match="it is retired"):
            await registry.check(folder)
        assert (await registry.resume("ada", OPERATOR)).retired
        await registry.accept(folder, OPERATOR)
        await registry.check(folder)
        assert not (await registry.get("ada")).retired and (await opened.board.get(task.id)).assignee is None
        claim = await opened.mailbox.take("ada")
        assert claim is not None and claim.mail.text == "first"
