"""An idle team with everything real but the model: database, attention controller, patrol, dream cycle."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from engines import open_books
from pulse_doubles import ScriptedDuty, World

from artoo.agents.board.next_task import Allocation
from artoo.agents.cognition.consolidate import DreamCycle
from artoo.agents.cognition.consolidation_plan import Promotion
from artoo.agents.cognition.store import CognitionStore
from artoo.agents.heartbeat.duties import Done, Duty
from artoo.agents.identity.registry import Registry
from artoo.agents.patrol.conditions import Looking
from artoo.agents.patrol.patrol import Patrol, PatrolRequest
from artoo.agents.patrol.store import PatrolStore
from artoo.agents.storage.database import Database
from artoo.contracts.agents import OPERATOR
from artoo.contracts.criteria import CommandSucceeds, FileMatches
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

TEAM = ("ada", "alan", "edsger", "grace", "kurt")
DAY = 86_400.0
ROUTINE = """
# Patrol

- Sum up what is new. when: file_exists reports/*.csv
- Sort the requests. when: file_changed inbox.txt
- Tell me about errors.
  when: file_matches log.txt ERROR
- Say hello. when: mail
"""


class Queue(ScriptedDuty):
    """The attention controller's queue as a duty; that it is asked to do something fails the test."""

    def __init__(self, clock: FakeClock, allocation: Allocation, agent: str) -> None:
        super().__init__(clock, "work")
        self._allocation = allocation
        self._agent = agent

    async def due(self) -> str | None:
        waiting = await self._allocation.peek(self._agent)
        return None if waiting is None else waiting.id


def _duties(agent: str, home: Path, database: Database, clock: FakeClock, asked: list[str]) -> tuple[Duty, ...]:
    async def submit(request: PatrolRequest) -> Done:
        asked.append(request.text)
        return Done(items=1, llm_calls=1)

    async def tell(record: object) -> None:
        raise AssertionError(record)

    async def holds(check: FileMatches | CommandSucceeds) -> bool:
        return False

    async def promote(promotion: Promotion) -> None:
        raise AssertionError(promotion)

    ids = SequentialIds()
    store = PatrolStore(database, agent)
    sights = Looking(agent, home, database, holds)
    patrol = Patrol(agent, (home / "HEARTBEAT.md",), store, sights, clock, submit=submit, tell=tell)
    dream = DreamCycle(agent, CognitionStore(database, agent, 90), home / agent, clock, ids, promote=promote)
    return (Queue(clock, Allocation(database, ids), agent), patrol, dream)


async def _idle(home: Path, seconds: float) -> None:
    clock = FakeClock()
    (home / "HEARTBEAT.md").write_text(ROUTINE)
    (home / "inbox.txt").write_text("old")
    asked: list[str] = []
    async with await open_books(home, clock) as database:
        world = World(clock, database)
        async with AsyncExitStack() as stack:
            for name in TEAM:
                await Registry(database).register(name, OPERATOR, sha256="0" * 64)
                duties = _duties(name, home, database, clock, asked)
                await stack.enter_async_context(world.beating(duties, name))
            await world.live(seconds)
        rows = [await world.outcomes(name) for name in TEAM]
    assert rows == [[("idle", int(seconds // 120) + 1)]] * 5
    assert asked == []


@pytest.mark.usefixtures("engine")
async def test_an_idle_team_asks_nothing_of_a_model_in_an_hour(tmp_path: Path) -> None:
    """155 beats over a full HEARTBEAT.md, a board and a mailbox: no request, and one ledger row an agent."""
    await _idle(tmp_path, DAY / 24)


@pytest.mark.torture
async def test_an_idle_team_asks_nothing_of_a_model_in_a_week(tmp_path: Path) -> None:
    """25,205 beats: the same."""
    await _idle(tmp_path, 7 * DAY)
