"""The ledger of beats on disk: each once, through restarts, and no growth while nothing happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
from engines import open_books
from pulse_doubles import ScriptedDuty, World

from artoo.agents.heartbeat.beat_grid import Beat
from artoo.agents.heartbeat.beat_ledger import Pulses
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database
from artoo.contracts.agents import AgentWoken, ClockJumped, PulseRecorded
from artoo.contracts.base import Contract
from artoo.contracts.errors import ActivityStoreError
from artoo.contracts.roles import Role
from artoo.testing.clock import FakeClock

HOUR = 3_600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def database(tmp_path: Path, clock: FakeClock, engine: str) -> AsyncGenerator[Database]:
    async with await open_books(tmp_path, clock) as opened:
        yield opened


async def _complete(database: Database, agent: str = "ada") -> int:
    """How many beats are accounted for; fails when one is missing or there twice."""
    rows = await database.read(
        lambda reading: reading.all("SELECT * FROM pulses WHERE agent = ? ORDER BY number", (agent,))
    )
    expected = 1
    for row in rows:
        assert row["number"] == expected
        expected += row["count"]
    return expected - 1


async def _published(database: Database) -> list[Contract]:
    heard: list[Contract] = []

    def publish(sender: Role, subject: str, payload: Contract) -> None:
        assert (sender, subject) == (Role.HEARTBEAT, "ada")
        heard.append(payload)

    await Outbox(database, publish).drain()
    return heard


async def test_a_quiet_day_is_a_handful_of_rows(database: Database, clock: FakeClock) -> None:
    """Idle beats share a row; the stream hears of each."""
    ledger, duty = Pulses(database), ScriptedDuty(clock)
    world = World(clock, ledger)
    async with world.beating([duty]):
        await world.live(HOUR)
        duty.waiting = 1
        await world.live(HOUR)
    assert [pulse.outcome for pulse in await ledger.recent("ada")] == ["idle", "run", "idle"]
    assert await _complete(database) == 61
    assert sum(pulse.count for pulse in await ledger.recent("ada") if pulse.outcome == "idle") == 60
    heard = [record for record in await _published(database) if isinstance(record, PulseRecorded)]
    assert [sum(pulse.outcome == outcome for pulse in heard) for outcome in ("idle", "run")] == [60, 1]
    assert len({pulse.event for pulse in heard}) == 61


async def test_restarts_continue_the_numbers(database: Database, clock: FakeClock) -> None:
    """Missed beats, jumps and wakes of several lives of the process leave one gapless ledger."""
    ledger, duty = Pulses(database), ScriptedDuty(clock)
    world = World(clock, ledger)
    for away in (0.0, 30.0, HOUR, 200.0):
        clock.advance(away)
        async with world.beating([duty]) as heart:
            await world.live(300)
            duty.waiting = 1
            heart.wake("mail")
            await world.live(10)
    clock.jump(-HOUR)
    async with world.beating([duty]):
        await world.live(10)
    last = await ledger.last("ada")
    assert last is not None and await _complete(database) == last.number
    heard = await _published(database)
    assert sum(isinstance(record, ClockJumped) for record in heard) == 1
    assert sum(isinstance(record, AgentWoken) for record in heard) == 4


async def test_a_run_is_in_the_ledger_before_its_work(database: Database, clock: FakeClock) -> None:
    """A process killed in the middle of work leaves a run, not a missed beat; the next start ends it."""
    now = clock.now()
    ledger = Pulses(database)
    await ledger.begin(
        Beat(1, now), PulseRecorded(agent="ada", due_at=now, at=now, outcome="run", why="not finished")
    )
    assert await ledger.last("ada") == Beat(1, now)
    assert await ledger.cut_off("ada", "the process ended") == 1
    assert await ledger.cut_off("ada", "the process ended") == 0
    assert [(pulse.outcome, pulse.why) for pulse in await ledger.recent("ada")] == [("run", "the process ended")]
    assert len(await _published(database)) == 1


async def test_a_beat_is_never_accounted_for_twice(database: Database, clock: FakeClock) -> None:
    """The database itself refuses a second account of one beat."""
    now = clock.now()
    ledger = Pulses(database)
    missed = PulseRecorded(agent="ada", due_at=now, at=now, outcome="missed", count=3)
    last = Beat(3, now + timedelta(seconds=240))
    await ledger.record(Beat(1, now), missed, last=last)
    assert await ledger.last("ada") == last
    with pytest.raises(ActivityStoreError):
        await ledger.record(Beat(1, now), missed, last=last)
