"""Routing around an agent that does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from core_doubles import office

from artoo.team.letters import Letters
from artoo.testing import FakeClock


@pytest.mark.usefixtures("engine")
async def test_a_question_is_routed_around_an_agent_that_does_not_answer(tmp_path: Path) -> None:
    """After the timeout the first substitute that is not the asker itself is asked, and answers for the other."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        names, standins = ("bob", "cyd"), ("ada", "cyd")
        letters = Letters("ada", "w", opened.mailbox, opened.asking, names, 30.0, standins, opened.board.work.ask)
        assert letters.seconds == 60
        asking, claim = group.create_task(letters.ask("bob", "6 x 7?")), None
        while claim is None:
            await clock.wait_for_sleepers()
            claim = await opened.mailbox.take("cyd")
            if claim is None:
                clock.advance(1)
        assert 30 <= clock.monotonic() <= 31
        await opened.mailbox.answer(claim, "42")
        assert await asking == "cyd (in the place of bob, who does not answer) answers: 42"
