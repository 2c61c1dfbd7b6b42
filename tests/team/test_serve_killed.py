"""kill -9 of `artoo serve` at random moments, with tasks and letters in flight."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from serving_world import Serving, script

from artoo import Config
from artoo.agents.identity.folders import create_agent
from artoo.agents.mail.outbox import Outbox
from artoo.contracts.agents import OPERATOR, BoardState, Complexity, TaskMoved, TrustLevel
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.team.office import Office, open_office
from artoo.testing import ScriptedServer

OVER = (BoardState.COMPLETED, BoardState.FAILED)


async def settled(office: Office, amount: int) -> bool:
    """Whether every task is over and every letter answered."""
    tasks = await office.board.list()
    answers = await office.mailbox.list(OPERATOR, "inbox")
    return all(task.state in OVER for task in tasks) and len(answers) == amount


async def play(place: Path, kills: int, seed: int, amount: int) -> None:
    """`amount` tasks and letters, `kills` dead processes, and one that finishes what they left."""
    rng = random.Random(seed)
    project, home = place / "project", place / "home"
    project.mkdir()
    config = Config.model_validate({"workspace": place / "out"}).at_home(home)
    async with ScriptedServer(script) as server, open_office(config) as office:
        serving = Serving(place, server.base_url)
        told = await prepare(office, project, amount)
        for _ in range(kills):
            await serving.killed_after(rng.uniform(0.4, 2.5))
        before = serving.greetings()
        last = await serving.start()
        async with asyncio.timeout(120):
            while serving.greetings() == before or not await settled(office, amount):
                await asyncio.wait({asyncio.ensure_future(asyncio.sleep(0.2))})
            last.terminate()
            await last.wait()
        assert last.returncode == 0, serving.errors.read_text()
        await check(office, told | serving.told(), project, amount)


async def prepare(office: Office, project: Path, amount: int) -> set[str]:
    """Agents, tasks and letters, and the records that this process itself has told."""
    told: set[str] = set()

    def publish(sender: Role, subject: str, payload: Contract) -> None:
        if isinstance(payload, TaskMoved):
            told.add(payload.event)

    for name, level in (("ada", TrustLevel.PROBATION), ("cyd", TrustLevel.SENIOR)):
        identity = create_agent(office.home, name, role="clerk", persona=f"{name} is exact.")
        await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=level)
    for index in range(amount):
        name = ("ada", "cyd")[index % 2]
        text = f"write task{index}.txt with one line"
        simple = Complexity.SIMPLE
        await office.board.add(text, OPERATOR, assignee=name, complexity=simple, project=str(project))
        await office.mailbox.send(OPERATOR, name, f"please write letter{index}.txt")
    await Outbox(office.database, publish).drain()
    return told


def files(place: Path) -> list[str]:
    """The names in a directory."""
    return sorted(path.name for path in place.iterdir())


async def check(office: Office, told: set[str], project: Path, amount: int) -> None:
    """Nothing is lost, nothing is doubled, everything is on record."""
    tasks = await office.board.list()
    assert [task.state for task in tasks] == [BoardState.COMPLETED] * amount
    assert files(project) == sorted(f"task{index}.txt" for index in range(amount))
    answers = await office.mailbox.list(OPERATOR, "inbox")
    asked = await office.mailbox.sent(OPERATOR)
    assert sorted(kept.mail.in_reply_to or "" for kept in answers) == sorted(kept.mail.id for kept in asked)
    assert all(kept.partition == "archive" for kept in asked)
    for task in tasks:
        moves = [one for one in await office.board.log(task.id) if isinstance(one, TaskMoved)]
        assert [move.before for move in moves] == [None, *(move.after for move in moves[:-1])]
        assert all(move.actor for move in moves)
        assert [move for move in moves if move.event not in told] == []
    waiting = await office.database.read(lambda reading: reading.count("SELECT count(*) FROM events"))
    assert waiting == 0


async def test_killed_a_few_times(place: Path) -> None:
    """Three kills: no letter lost or answered twice, no task stuck, no transition missing from the trail."""
    await play(place, 3, 1, 6)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
async def test_killed_often(place: Path, seed: int) -> None:
    """The same with ten kills; ten times over, that is a hundred."""
    await play(place, 10, 100 + seed, 16)
