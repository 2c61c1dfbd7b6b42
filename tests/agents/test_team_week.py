"""A team over a simulated week: nothing is asked of a model while idle, and every beat is accounted for."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

import pytest
from pulse_doubles import BookLedger, ScriptedDuty, World

from artoo.contracts.agents import AgentWoken, ClockJumped
from artoo.testing.clock import FakeClock

TEAM = ("ada", "alan", "edsger", "grace", "kurt")
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


async def test_an_idle_team_of_five_asks_no_model_in_a_week() -> None:
    """25,205 beats of five agents: all idle, no call, nothing missed."""
    clock, ledger = FakeClock(), BookLedger()
    world = World(clock, ledger)
    duties = {name: [ScriptedDuty(clock, kind) for kind in ("work", "patrol")] for name in TEAM}
    async with AsyncExitStack() as stack:
        for name in TEAM:
            await stack.enter_async_context(world.beating(duties[name], name))
        await world.live(7 * DAY)
    assert [ledger.assert_complete(name) for name in TEAM] == [5_041] * 5
    assert {outcome for name in TEAM for outcome in ledger.outcomes(name)} == {"idle"}
    assert sum(duty.llm_calls for pair in duties.values() for duty in pair) == 0
    assert sum(pulse.llm_calls for name in TEAM for pulse in ledger.pulses(name)) == 0


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_working_week_accounts_for_every_beat_and_every_call(seed: int) -> None:
    """Tasks, mail, a storm of 429s, a sleeping machine, clocks set back and a restart: no beat lost, no overlap."""
    chance = random.Random(seed)
    clock, ledger = FakeClock(), BookLedger()
    world = World(clock, ledger)
    duties = {name: ScriptedDuty(clock, "work") for name in TEAM}
    for part in range(2):
        async with AsyncExitStack() as stack:
            hearts = [await stack.enter_async_context(world.beating([duties[name]], name)) for name in TEAM]
            for hour in range(84):
                for name, heart in zip(TEAM, hearts, strict=True):
                    duties[name].seconds = chance.choice((5.0, 40.0, 700.0))
                    duties[name].waiting += chance.choice((0, 0, 0, 1, 3))
                    duties[name].throttled = part == 0 and 24 <= hour < 30
                    if chance.random() < 0.3:
                        heart.wake("mail")
                if hour == 40:
                    clock.jump(8 * HOUR if part == 0 else -HOUR)
                await world.live(HOUR)
        clock.advance(40 * MINUTE)
    calls = sum(duty.llm_calls for duty in duties.values())
    in_pulses = sum(pulse.llm_calls for name in TEAM for pulse in ledger.pulses(name))
    in_wakes = sum(record.llm_calls for record in ledger.told if isinstance(record, AgentWoken))
    cut_short = sum("cut short" in pulse.why for name in TEAM for pulse in ledger.pulses(name))
    assert in_pulses + in_wakes <= calls <= in_pulses + in_wakes + cut_short
    assert [ledger.assert_complete(name) for name in TEAM] > [4_000] * 5
    assert {duty.most_at_once for duty in duties.values()} == {1}
    outcomes = {outcome for name in TEAM for outcome in ledger.outcomes(name)}
    assert outcomes == {"run", "idle", "skipped", "missed"}
    assert len([record for record in ledger.told if isinstance(record, ClockJumped)]) == 10


async def test_a_storm_of_429s_is_waited_out() -> None:
    """Six hours of throttling cost five agents at most twelve calls each, and work goes on afterwards."""
    clock, ledger = FakeClock(), BookLedger()
    world = World(clock, ledger)
    duties = {name: ScriptedDuty(clock, "work") for name in TEAM}
    async with AsyncExitStack() as stack:
        hearts = [await stack.enter_async_context(world.beating([duties[name]], name)) for name in TEAM]
        for duty in duties.values():
            duty.waiting, duty.throttled = 1, True
        for _ in range(360):
            await world.live(MINUTE)
            for heart in hearts:
                heart.wake("mail")
        stormed = [duty.llm_calls for duty in duties.values()]
        for duty in duties.values():
            duty.throttled = False
        await world.live(2 * HOUR)
    assert max(stormed) <= 12
    assert [duty.waiting for duty in duties.values()] == [0] * 5
    for name in TEAM:
        ledger.assert_complete(name)
