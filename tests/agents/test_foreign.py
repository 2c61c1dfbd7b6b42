"""What foreign agents hand in, on both engines of the books: once a message, within the operator's bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import office

from artoo.agents.foreign import Asked, Bounds, Foreign
from artoo.agents.foreign_post import ForeignPost, Target
from artoo.agents.governance import SEED_POLICIES
from artoo.contracts.agents import OPERATOR, BoardState
from artoo.contracts.errors import ForeignRefused
from artoo.testing.ids import SequentialIds

pytestmark = pytest.mark.usefixtures("engine")


async def test_a_message_asks_once_and_within_bounds(tmp_path: Path) -> None:
    """The same message again is the same task; another text under its id, and a task too many, are refused."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        bounds = Bounds(open=2, calls=7, money=0.5)
        first, new = await foreign.accept("bob", Asked("m1", "", "count the files"), bounds)
        again, fresh = await foreign.accept("bob", Asked("m1", "", "count the files"), bounds)
        assert (new, fresh, again.task.id) == (True, False, first.task.id)
        with pytest.raises(ForeignRefused, match="said something else"):
            await foreign.accept("bob", Asked("m1", "", "remove the files"), bounds)
        await foreign.accept("bob", Asked("m2", "", "and the lines"), bounds)
        with pytest.raises(ForeignRefused, match="2 at a time"):
            await foreign.accept("bob", Asked("m3", "", "and the words"), bounds)
        spendable = await foreign.spendable(first.task.id)
        assert spendable is not None and (spendable.calls, spendable.tokens, spendable.money) == (7, None, 0.5)
        assert await foreign.get("eve", "", first.task.id) is None
        assert [one.message for one in await foreign.list("bob", "", limit=5)] == ["m2", "m1"]
        cancelled = await foreign.cancel("bob", "", first.task.id)
        assert (
            cancelled is not None and cancelled.task.state is BoardState.CANCELLED and cancelled.ended is not None
        )


async def test_targets_are_told_what_they_do_not_know(tmp_path: Path) -> None:
    """A target is due until it was told the latest move, also after it was replaced; a letter is sent once."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        post = ForeignPost(opened.database)
        task, _ = await foreign.accept("bob", Asked("m1", "c", "count the files"), Bounds())
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
        assert await post.task_of("mail") == ""
        for name in ("t1", "t2"):
            await post.sent("mail", name)
        assert await post.task_of("mail") == "t2"


async def test_who_can_be_written_to_is_what_the_operator_says(tmp_path: Path) -> None:
    """Entering names twice changes nothing; entering others replaces them."""
    async with office(tmp_path, team=False) as opened:
        foreign = Foreign(opened.database, SequentialIds(), policies=SEED_POLICIES)
        for names in (("bob", "eve"), ("bob", "eve"), ("zoe",)):
            await foreign.enter(names)
            rows = await opened.database.read(lambda reading: reading.all("SELECT name FROM foreign_agents"))
            assert sorted(str(row["name"]) for row in rows) == sorted(f"a2a:{name}" for name in names)
