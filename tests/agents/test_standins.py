"""Routing around an agent that does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from core_doubles import office

from artoo.team.letters import SILENT_SECONDS, Letters, StandIns
from artoo.testing import FakeClock


def test_whoever_was_silent_comes_last_for_a_while() -> None:
    """The stand-in is asked second, first after a miss, and second again after an answer or some time."""
    clock = FakeClock()
    ways = StandIns(("dan", "eve"), clock)
    assert ways.ways("ada", "bob") == ("bob", "dan")
    assert ways.ways("ada", "dan") == ("dan", "eve")
    assert ways.ways("dan", "bob") == ("bob", "eve")
    ways.heard("bob", answered=False)
    assert ways.ways("ada", "bob") == ("dan", "bob")
    ways.heard("bob", answered=True)
    assert ways.ways("ada", "bob") == ("bob", "dan")
    ways.heard("bob", answered=False)
    clock.advance(SILENT_SECONDS + 1)
    assert ways.ways("ada", "bob") == ("bob", "dan")
    assert StandIns((), clock).ways("ada", "bob") == ("bob",)


@pytest.mark.usefixtures("engine")
async def test_a_question_is_routed_around_who_does_not_answer(tmp_path: Path) -> None:
    """After the timeout a stand-in is asked, and answers for the other; the next question goes there first."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        names, standins = ("bob", "cyd"), StandIns(("cyd",), clock)
        letters = Letters("ada", "w", opened.mailbox, opened.asking, names, 30.0, standins, opened.board.work.ask)
        assert letters.seconds == 60
        for waited in (30, 0):
            began = clock.monotonic()
            asking = group.create_task(letters.ask("bob", f"6 x 7? {waited}"))
            claim = None
            while claim is None:
                await clock.wait_for_sleepers()
                claim = await opened.mailbox.take("cyd")
                if claim is None:
                    clock.advance(1)
            assert waited <= clock.monotonic() - began <= waited + 1
            await opened.mailbox.answer(claim, "42")
            assert await asking == "cyd (in the place of bob, who does not answer) answers: 42"
