"""What waits for the operator because nobody else can move it on."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_doubles import office

from artoo.agents.board.operator_todo import SEEN_SECONDS, left_to_operator
from artoo.agents.board.rules import SEED_POLICIES
from artoo.agents.identity.folders import folder_of
from artoo.cluster.machines import Machines
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import IdentityRefused
from artoo.testing import FakeClock
from board_work import hand_in, take

pytestmark = pytest.mark.usefixtures("engine")


async def test_every_state_that_needs_the_operator_is_named(tmp_path: Path) -> None:
    """A review that no agent can do, a failure and a block are named; what agents go on with is not."""
    async with office(tmp_path, team=False) as opened:
        board, registry = opened.board, opened.registry
        await registry.register("ada", OPERATOR, sha256="a" * 64)
        reviewed, failed, blocked, waiting = [await board.add(text, OPERATOR, assignee="ada") for text in "rfbw"]
        await hand_in(opened.database, await take(opened.database, reviewed.id, "ada"), "done")
        await board.work.fail(await take(opened.database, failed.id, "ada"), "no way")
        await board.work.hold_up(await take(opened.database, blocked.id, "ada"), "too large")

        async def named() -> dict[str, str]:
            return {one.task.text: one.why for one in await left_to_operator(opened.database, SEED_POLICIES)}

        assert await named() == {
            "r": "no agent that may review it is there",
            "f": "failed: let it be tried again, or cancel it",
            "b": "blocked: release it, or cancel it (too large)",
        }
        with pytest.raises(IdentityRefused):
            await registry.check(folder_of(tmp_path, "ada"))
        gone = "ada is stopped (its identity file is gone): give it to another, cancel it, or see artoo agent list"
        assert (await named())["w"] == gone
        await board.assign(waiting.id, None, OPERATOR)
        await registry.register("cyd", OPERATOR, sha256="c" * 64, trust=TrustLevel.SENIOR)
        assert "r" not in await named()
        await registry.pause("cyd", OPERATOR)
        assert "r" in await named()
        assert "w" not in await named()


async def test_what_nobody_could_do_waits_for_the_operator(tmp_path: Path) -> None:
    """Where no agent is, or all are retired or stopped, a task that anybody may do is named."""
    async with office(tmp_path, team=False) as opened:
        await opened.board.add("count", OPERATOR)

        async def named() -> list[str]:
            return [one.why for one in await left_to_operator(opened.database, SEED_POLICIES)]

        assert [why.startswith("no agent can do this") for why in await named()] == [True]
        await opened.registry.register("ada", OPERATOR, sha256="a" * 64)
        assert await named() == []
        await opened.registry.retire("ada", OPERATOR)
        assert [why.startswith("no agent can do this") for why in await named()] == [True]


async def test_a_project_that_no_machine_at_work_has_is_named(tmp_path: Path) -> None:
    """Where several machines share the books, a task waits with the reason until one that has its project works."""
    clock = FakeClock()
    async with office(tmp_path, clock, team=False) as opened:
        await opened.registry.register("ada", OPERATOR, sha256="a" * 64)
        await opened.board.add("count", OPERATOR, project="git.example.org/site")
        machines = Machines(opened.database)

        async def named() -> list[str]:
            return [one.why for one in await left_to_operator(opened.database, SEED_POLICIES)]

        assert await named() == []  # there is one machine, which has every directory
        await machines.seen("near", "1.0", ["git.example.org/other"])
        assert [why.partition(":")[0] for why in await named()] == [
            "no machine that works has its project git.example.org/site"
        ]
        await machines.seen("far", "1.0", ["git.example.org/site", "/src/site"], worker=True)
        assert await named() == []
        clock.advance(SEEN_SECONDS + 1)
        assert len(await named()) == 1


async def test_an_older_reason_is_not_why_a_task_is_blocked(tmp_path: Path) -> None:
    """The operator may block one without a word: that it was taken before is no reason."""
    async with office(tmp_path, team=False) as opened:
        await opened.registry.register("ada", OPERATOR, sha256="a" * 64)
        task = await opened.board.add("count", OPERATOR, assignee="ada")
        await take(opened.database, task.id, "ada")
        await opened.board.work.block(task.id, OPERATOR, "")
        (left,) = await left_to_operator(opened.database, SEED_POLICIES)
        assert left.why == "blocked: release it, or cancel it"
