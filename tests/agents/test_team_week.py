"""A team over days of simulated time: tasks, mail, throttling, sleep, wrong clocks, and a restart."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest
from engines import open_books
from pulse_doubles import ScriptedDuty, World

from artoo.contracts.agents import AgentWoken, ClockJumped
from artoo.testing.clock import FakeClock

TEAM = ("ada", "alan", "edsger", "grace", "kurt")
MINUTE, HOUR = 60.0, 3_600.0


@pytest.mark.torture
@pytest.mark.parametrize("seed", [1, 2])
async def test_working_days_account_for_every_beat_and_every_call(tmp_path: Path, seed: int) -> None:
    """Tasks, mail, a storm of 429s, a sleeping machine, clocks set back and a restart: no beat lost, no overlap."""
    chance, clock = random.Random(seed), FakeClock()
    async with await open_books(tmp_path, clock) as database:
        world = World(clock, database)
        duties = {name: ScriptedDuty(clock, "work") for name in TEAM}
        for part in range(2):
            async with AsyncExitStack() as stack:
                hearts = [await stack.enter_async_context(world.beating([duties[name]], name)) for name in TEAM]
                for hour in range(36):
                    for name, heart in zip(TEAM, hearts, strict=True):
                        duties[name].seconds = chance.choice((5.0, 40.0, 700.0))
                        duties[name].waiting += chance.choice((0, 0, 0, 1, 3))
                        duties[name].throttled = part == 0 and 10 <= hour < 16
                        if chance.random() < 0.3:
                            heart.wake("mail")
                    if hour == 20:
                        clock.jump(8 * HOUR if part == 0 else -HOUR)
                    await world.live(HOUR)
            clock.advance(40 * MINUTE)
        pulses = [pulse for name in TEAM for pulse in await world.pulses(name)]
        woken = cast("list[AgentWoken]", await world.heard(AgentWoken))
        calls = sum(duty.llm_calls for duty in duties.values())
        told = sum(pulse.llm_calls for pulse in pulses) + sum(record.llm_calls for record in woken)
        cut_short = sum("cut short" in pulse.why for pulse in pulses)
        assert told <= calls <= told + cut_short
        assert {duty.most_at_once for duty in duties.values()} == {1}
        assert {pulse.outcome for pulse in pulses} == {"run", "idle", "skipped", "missed"}
        assert len(await world.heard(ClockJumped)) == 10
