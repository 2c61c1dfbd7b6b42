"""What a model cannot judge or its server refuses ends with that one task: the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from team_world import crew, settled, writing

from artoo.agents.board.operator_todo import left_to_operator
from artoo.contracts.agents import BoardState, TaskChanged, TrustLevel
from artoo.testing import Asked
from artoo.testing.replies import Scripted, refusal, server_error

PAIR = {"ada": TrustLevel.PROBATION, "cyd": TrustLevel.SENIOR}
_WORK = writing("new.txt", "n\n")


@pytest.mark.parametrize("answer", ["prose", "declined"])
async def test_a_review_that_cannot_be_judged_is_left_to_the_operator(place: Path, answer: str) -> None:
    """The reviewer tries a bad answer twice and a refusal once, and judges the next submission."""

    def script(asked: Asked) -> Scripted:
        if asked.contract == "ReviewReport" and "the first" in asked.user:
            return "I would rather not say." if answer == "prose" else refusal()
        return _WORK(asked)

    async with crew(place, script, trust=PAIR) as team:
        first = await team.add("write new.txt, the first", "ada")
        await team.left_to_operator(first)
        log = await team.office.board.log(first.id)
        assert any("cannot judge it" in one.detail for one in log if isinstance(one, TaskChanged))
        second = await team.add("write new.txt, another", "ada")
        await team.until(second, BoardState.COMPLETED)


async def test_a_refused_prompt_fails_its_task(place: Path) -> None:
    """HTTP 400 for what one task sends fails that task with the reason; nobody backs off."""

    def script(asked: Asked) -> Scripted:
        return server_error(400, "too long") if "the first" in asked.user else _WORK(asked)

    async with crew(place, script, trust=PAIR) as team:
        first = await team.add("write new.txt, the first", "ada")
        assert "too long" in (await team.until(first, BoardState.FAILED)).summary
        second = await team.add("write new.txt, another", "ada")
        await team.until(second, BoardState.COMPLETED)


async def test_an_agent_whose_folder_is_gone_is_stopped_and_its_tasks_are_shown(place: Path) -> None:
    """The next start stops it: what is given to it waits for the operator, and is not left lying as `ready`."""
    async with crew(place, _WORK, trust=PAIR) as team:
        home = team.office.home
    (home / "agents" / "ada").rename(home / "ada-away")
    async with crew(place, _WORK, trust={"cyd": TrustLevel.SENIOR}, config=team.office.config) as team:
        task = await team.add("write new.txt", "ada")
        (left,) = await settled(team, lambda: left_to_operator(team.office.database, team.office.policies))
        assert left.task.id == task.id and "ada is stopped" in left.why
