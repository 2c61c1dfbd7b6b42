"""The heartbeat: beats on a grid, each accounted for once, and no model asked without work."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from engines import open_books
from hypothesis import given, settings
from hypothesis import strategies as st
from pulse_doubles import ScriptedDuty, World

from artoo.agents.heartbeat.backoff import Backoff, WakeAllowance
from artoo.agents.heartbeat.duties import Done, throttled_ending, throttling
from artoo.agents.heartbeat.heartbeat import HeartbeatSettings
from artoo.agents.heartbeat.ledger import Beat
from artoo.agents.storage.database import Database
from artoo.contracts.agents import AgentWoken, ClockJumped, PulseRecorded, Recorded
from artoo.contracts.errors import ActivityStoreError, BudgetExhausted, ModelRefused, ModelUnreachable, ToolError
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.testing.clock import FakeClock

MINUTE, HOUR = 60.0, 3_600.0
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def database(tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Database]:
    async with await open_books(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def world(clock: FakeClock, database: Database) -> World:
    return World(clock, database)


async def wakes(world: World) -> list[tuple[str, str]]:
    """How the wakes ended that left a record, and why."""
    return [(one.outcome, one.why) for one in cast("list[AgentWoken]", await world.heard(AgentWoken))]


@settings(deadline=None)
@given(elapsed=st.floats(0, 1e7), interval=st.floats(60, 300))
def test_every_beat_of_the_grid_is_due_or_still_to_come(elapsed: float, interval: float) -> None:
    """Whenever one looks, the newest beat that is due was due less than an interval ago."""
    start = FakeClock().now()
    now = start + timedelta(seconds=elapsed)
    beat = Beat(7, start)
    newest = beat.later(beat.due(now, interval), interval)
    assert -1e-3 < (now - newest.due_at).total_seconds() < interval + 1e-3


async def test_an_idle_agent_looks_at_every_beat_and_asks_nobody(world: World, clock: FakeClock) -> None:
    """Without work an hour is 31 beats in one row; the stream hears of each, and no model is called."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(HOUR)
    assert await world.outcomes() == [("idle", 31)]
    assert len({cast("PulseRecorded", one).event for one in await world.heard(PulseRecorded)}) == 31
    assert duty.llm_calls == 0


async def test_work_is_done_at_the_beat_until_none_is_left(world: World, clock: FakeClock) -> None:
    """A pulse with work is a run; it tells what was done and at how many model calls."""
    mail, tasks = ScriptedDuty(clock), ScriptedDuty(clock, "tasks")
    async with world.beating([mail, tasks]):
        mail.waiting, tasks.waiting = 2, 3
        await world.live(130)
    first, second = await world.pulses()
    assert (first.outcome, second.outcome, second.llm_calls) == ("idle", "run", 5)
    assert second.why == "mail ×2, tasks ×3"


async def test_work_in_one_pulse_is_bounded_and_shared_among_the_duties(world: World, clock: FakeClock) -> None:
    """A duty that never runs dry neither starves another nor keeps the pulse for ever."""
    mail, patrol = ScriptedDuty(clock), ScriptedDuty(clock, "patrol")
    mail.waiting, patrol.waiting = 1_000, 1
    async with world.beating([mail, patrol], settings=HeartbeatSettings(items=4)):
        await world.live(10)
    assert (await world.pulses())[0].why == "mail ×3, patrol ×1"


async def test_a_beat_that_falls_into_work_is_skipped_and_never_overlaps(world: World, clock: FakeClock) -> None:
    """Work of five minutes skips the two beats inside it, with the reason, and runs alone."""
    duty = ScriptedDuty(clock, seconds=5 * MINUTE)
    duty.waiting = 1
    async with world.beating([duty]):
        await world.live(7 * MINUTE)
    assert await world.outcomes() == [("run", 1), ("skipped", 2), ("idle", 1)]
    assert (await world.pulses())[1].why == "still busy: mail"
    assert duty.most_at_once == 1


async def test_a_machine_that_slept_misses_beats_and_makes_up_for_none(world: World, clock: FakeClock) -> None:
    """Eight hours of sleep are one record of what was missed and one beat, not 240 beats in a burst."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(60)
        clock.jump(8 * HOUR)
        await world.live(70)
    assert await world.outcomes() == [("idle", 1), ("missed", 240), ("idle", 1)]
    assert [cast("ClockJumped", one).seconds for one in await world.heard(ClockJumped)] == [8 * HOUR]


async def test_beats_while_artoo_was_down_are_missed_when_it_starts_again(world: World, clock: FakeClock) -> None:
    """At the start due times are compared with the last beat that was recorded."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    clock.advance(HOUR)
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    assert await world.outcomes() == [("idle", 1), ("missed", 29), ("idle", 1)]


async def test_a_quick_restart_keeps_the_grid_and_looks_at_once(world: World, clock: FakeClock) -> None:
    """Within the interval no beat is due, but what arrived meanwhile is not left lying."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(10)
    duty.waiting = 1
    async with world.beating([duty]):
        await world.live(10)
        assert duty.waiting == 0
        await world.live(120)
    assert await world.outcomes() == [("idle", 2)]
    assert await wakes(world) == [("run", "mail ×1")]


async def test_a_run_that_a_dead_process_left_is_ended_at_the_next_start(world: World, clock: FakeClock) -> None:
    """It was a run, and says that it was cut short; it is not counted as missed too."""
    await world.ledger.begin("ada", Beat(1, clock.now()))
    clock.advance(500)
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(1)
    first = (await world.pulses())[0]
    assert (first.outcome, first.why) == ("run", "cut short: the process ended")


async def test_a_beat_is_never_accounted_for_twice(world: World, clock: FakeClock) -> None:
    """The database itself refuses a second account of one beat."""
    first, last = Beat(1, clock.now()), Beat(3, clock.now() + timedelta(seconds=240))
    await world.ledger.record("ada", first, "missed", last=last)
    assert await world.ledger.resumed("ada") == last
    with pytest.raises(ActivityStoreError):
        await world.ledger.record("ada", first, "missed", last=last)


async def test_a_clock_set_back_is_a_recorded_decision_and_no_beat_is_held_twice(
    world: World, clock: FakeClock
) -> None:
    """The beats keep their distance by the steady clock; their numbers go on."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(60)
        clock.jump(-HOUR)
        await world.live(10 * MINUTE)
    assert await world.outcomes() == [("idle", 6)]
    assert [cast("ClockJumped", one).seconds for one in await world.heard(ClockJumped)] == [-3600]


async def test_a_clock_set_back_while_artoo_was_down_starts_the_beats_again(world: World, clock: FakeClock) -> None:
    """A last beat in the future is no reason to stay silent until then."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    clock.jump(-24 * HOUR)
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    assert await world.outcomes() == [("idle", 2)]
    assert [cast("ClockJumped", one).decision for one in await world.heard(ClockJumped)] == [
        "artoo was away and the clock went back: the beats start again now"
    ]


async def test_mail_wakes_at_once(world: World, clock: FakeClock) -> None:
    """Mail that arrives a second after a beat is answered in that second, not 119 seconds later."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]) as heart:
        await world.live(1)
        duty.waiting = 1
        heart.wake("mail from grace")
        await world.live(1)
    assert duty.at == [1.0]
    assert await wakes(world) == [("run", "mail ×1")]


async def test_the_end_of_the_grace_loses_no_record_of_a_wake(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record still waits for the database when the grace ends: it is written all the same."""
    duty, tell, telling, told = ScriptedDuty(clock), world.ledger.tell, asyncio.Event(), asyncio.Event()

    async def slow(agent: str, record: Recorded) -> None:
        telling.set()
        await asyncio.sleep(0.05)
        await tell(agent, record)
        told.set()

    monkeypatch.setattr(world.ledger, "tell", slow)
    async with world.beating([duty], settings=HeartbeatSettings(grace=0)) as heart:
        await world.live(1)
        duty.waiting = 1
        heart.wake("mail")
        await telling.wait()
    await asyncio.wait_for(told.wait(), 5)
    assert await wakes(world) == [("run", "mail ×1")]


async def test_a_record_has_the_time_of_the_database(world: World, clock: FakeClock) -> None:
    """Machines that share a database may disagree about the time; beats and wakes are in one order."""
    await world.ledger.tell("ada", ClockJumped(agent="ada", seconds=1.0, decision="", at=NOON))
    assert [cast("ClockJumped", one).at for one in await world.heard(ClockJumped)] == [clock.now()] != [NOON]


async def test_a_storm_of_mail_cannot_storm_the_model(world: World, clock: FakeClock) -> None:
    """A hundred wakes within five seconds are as many looks as allowed; the rest waits for the beat, told once."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty], settings=HeartbeatSettings(items=1, wakes=6)) as heart:
        await world.live(1)
        for _ in range(100):
            duty.waiting += 1
            heart.wake("mail")
            await world.live(0.05)
    ended = [outcome for outcome, _ in await wakes(world)]
    assert (ended.count("run"), ended.count("deferred")) == (6, 1)
    assert duty.llm_calls == 6


async def test_wakes_for_bounded_work_are_not_counted(world: World, clock: FakeClock) -> None:
    """Work whose number somebody bounds already is done at once, however often; a letter after it still is."""
    duty = ScriptedDuty(clock)
    duty.results = [Done(items=1, llm_calls=1, bounded=1)] * 10
    async with world.beating([duty], settings=HeartbeatSettings(items=1, wakes=2)) as heart:
        await world.live(1)
        for _ in range(11):
            duty.waiting += 1
            heart.wake("work")
            await world.live(0.05)
    assert [outcome for outcome, _ in await wakes(world)] == ["run"] * 11


async def test_a_wake_during_work_is_not_lost(world: World, clock: FakeClock) -> None:
    """Mail that arrives while the agent is busy is looked at as soon as it is free."""
    duty = ScriptedDuty(clock, seconds=30)
    duty.waiting = 1
    async with world.beating([duty], settings=HeartbeatSettings(items=1)) as heart:
        await world.live(10)
        duty.waiting += 1
        heart.wake("mail")
        await world.live(25)
        assert duty.at == [0.0, 30.0]
        await world.live(30)
    assert await world.outcomes() == [("run", 1)]


async def test_throttling_backs_off_and_success_forgets_it(world: World, clock: FakeClock) -> None:
    """Each 429 doubles the wait up to an hour; beats in it are skipped with the reason; one success ends it."""
    duty = ScriptedDuty(clock)
    duty.waiting, duty.throttled = 1, True
    async with world.beating([duty]) as heart:
        await world.live(6 * HOUR)
        heart.wake("mail")
        await world.settle()
        duty.throttled = False
        await world.live(2 * HOUR)
    gaps = [later - earlier for earlier, later in zip(duty.at, duty.at[1:], strict=False)]
    assert gaps[:5] == [120, 240, 480, 960, 1920]
    assert max(gaps) <= HOUR + 120
    skipped = [pulse for pulse in await world.pulses() if pulse.outcome == "skipped"]
    assert all(pulse.why.startswith("backing off until ") and "429" in pulse.why for pulse in skipped)
    assert (await world.outcomes())[-1][0] == "idle"
    assert duty.waiting == 0


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModelUnreachable("no server at :1"), "no model: no server at :1"),
        (ModelRefused("too many", status=429), "429: too many"),
        (ToolError("broken"), "mail failed: broken"),
    ],
)
async def test_errors_of_the_work_are_recorded_and_backed_off_from(
    world: World, clock: FakeClock, error: Exception, why: str
) -> None:
    """Whatever artoo itself raises ends the pulse, not the agent."""
    duty = ScriptedDuty(clock)
    duty.waiting = 1
    duty.results.append(error)
    async with world.beating([duty]):
        await world.live(130)
    assert (await world.pulses())[0].why == f"mail ×0; backing off: {why}"
    assert duty.waiting == 0


async def test_an_agents_own_trouble_is_tried_again_soon_and_less_often_while_it_lasts(
    world: World, clock: FakeClock
) -> None:
    """A lock that was held a moment too long does not cost a whole interval; what stays broken costs ever less."""
    duty = ScriptedDuty(clock)
    duty.waiting = 1
    duty.results = [ToolError("in use")] * 4
    async with world.beating([duty]):
        await world.live(5 * MINUTE)
    assert duty.at == [0.0, 15.0, 45.0, 105.0, 225.0]
    assert duty.waiting == 0


async def test_agents_of_one_endpoint_wait_together_but_not_for_each_others_troubles(
    world: World, clock: FakeClock
) -> None:
    """A 429 holds everybody back; a broken identity only the agent whose it is."""
    shared = Backoff(120, lambda: 1.0)
    ada, grace = ScriptedDuty(clock), ScriptedDuty(clock)
    async with world.beating([ada], backoff=shared), world.beating([grace], "grace", backoff=shared):
        ada.waiting = 1
        ada.results.append(ToolError("broken"))
        await world.live(125)
        grace.waiting = 1
        await world.live(120)
        assert grace.waiting == 0
        ada.waiting, ada.throttled = 1, True
        await world.live(240)
        grace.waiting = 1
        await world.live(120)
        assert grace.waiting == 1
    assert any("429" in pulse.why for pulse in await world.pulses("grace"))


async def test_work_that_cannot_be_looked_for_is_skipped_and_told(world: World, clock: FakeClock) -> None:
    """A database that cannot be read is no idle beat."""

    class Blind(ScriptedDuty):
        async def due(self) -> str | None:
            raise ToolError("locked")

    async with world.beating([Blind(clock)]) as heart:
        await world.live(1)
        heart.wake("mail")
        await world.live(1)
    (pulse,) = await world.pulses()
    assert (pulse.outcome, pulse.why) == ("skipped", "could not look: locked")


@pytest.mark.parametrize("known", [True, False])
async def test_a_paused_agent_skips_and_says_so(world: World, clock: FakeClock, *, known: bool) -> None:
    """Neither a beat nor a wake moves a paused agent, and it does not even look; nor when that cannot be told."""

    async def paused() -> str | None:
        if known:
            return "the operator paused it"
        raise ToolError("there is no agent ada")

    duty = ScriptedDuty(clock)
    duty.waiting = 1
    async with world.beating([duty], paused=paused) as heart:
        await world.live(1)
        heart.wake("mail")
        await world.live(1)
    why = "paused: the operator paused it" if known else "could not look: there is no agent ada"
    (pulse,) = await world.pulses()
    assert (pulse.outcome, pulse.why) == ("skipped", why)
    assert await wakes(world) == [("deferred", why)]
    assert duty.looks == 0


@pytest.mark.parametrize(("seconds", "why"), [(10, "mail ×1"), (1_000, "nothing done; cut short")])
async def test_stopping_lets_work_finish_within_the_grace(
    world: World, clock: FakeClock, seconds: float, why: str
) -> None:
    """What ends within the bound ends whole; the rest is cancelled, and its beat says so."""
    duty = ScriptedDuty(clock, seconds=seconds)
    duty.waiting = 1
    async with world.beating([duty], settings=HeartbeatSettings(grace=20)):
        await world.live(1)
    assert clock.monotonic() < 100
    (pulse,) = await world.pulses()
    assert (pulse.outcome, pulse.why) == ("run", why)


async def test_no_progress_is_no_endless_pulse(world: World, clock: FakeClock) -> None:
    """A duty that stays due and does nothing gets one turn a pulse."""
    duty = ScriptedDuty(clock)
    duty.waiting = 1
    duty.results.extend([Done()] * 5)
    async with world.beating([duty]):
        await world.live(1)
    assert len(duty.at) == 1


STEPS = st.tuples(st.sampled_from(("live", "jump", "restart", "work", "wake")), st.floats(-4_000, 4_000))


@pytest.mark.torture
@settings(deadline=None, max_examples=40)
@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_beats_are_complete_and_come_in_no_burst(steps: list[tuple[str, float]]) -> None:
    """Any mix of time, jumps, restarts, long work and wakes: each beat once, no overlap, one for each cause."""
    clock = FakeClock()
    duty = ScriptedDuty(clock, seconds=200)

    async def lives(directory: Path) -> list[PulseRecorded]:
        parts: list[list[tuple[str, float]]] = [[]]
        for step in steps:
            parts.append([]) if step[0] == "restart" else parts[-1].append(step)
        async with await open_books(directory, clock) as database:
            world = World(clock, database)
            for part in parts:
                async with world.beating([duty]) as heart:
                    for kind, amount in part:
                        match kind:
                            case "jump":
                                clock.jump(amount)
                            case "work":
                                duty.waiting += 2
                            case "wake":
                                heart.wake("mail")
                            case _:
                                await world.live(abs(amount))
                clock.advance(50)
            return await world.pulses()

    with tempfile.TemporaryDirectory() as directory:
        pulses = asyncio.run(lives(Path(directory)))
    held = sum(pulse.count for pulse in pulses if pulse.outcome not in ("missed", "skipped"))
    causes = 1 + sum(kind in ("jump", "restart") for kind, _ in steps)
    assert held <= clock.monotonic() / 120 + causes
    assert duty.most_at_once <= 1


@settings(deadline=None)
@given(failures=st.integers(1, 60), jitter=st.floats(0, 1, exclude_max=True), first=st.floats(15, 300))
def test_back_off_is_bounded_and_never_shorter_than_half(failures: int, jitter: float, first: float) -> None:
    """The n-th wait is between half and all of first · 2ⁿ⁻¹, and never beyond the longest."""
    backoff = Backoff(first, lambda: jitter, longest=3_600)
    now, delays = 0.0, list[float]()
    for _ in range(failures):
        delays.append(backoff.failed(now, "429", at=NOON))
        now += delays[-1] + 1.0
    ceilings = [min(3_600.0, first * 2.0**n) for n in range(failures)]
    assert all(c / 2 <= d <= c for d, c in zip(delays, ceilings, strict=True))
    assert backoff.waiting(now) is None


def test_agents_that_are_throttled_at_once_are_throttled_once() -> None:
    """Failures of one storm wait as long as one: they do not add up; the text stays the same all the while."""
    backoff = Backoff(120.0, lambda: 1.0)
    assert [backoff.failed(float(at), f"HTTP 40{at}", at=NOON) for at in range(3)] == [120.0, 119.0, 118.0]
    said = "backing off until 12:02 UTC, after 1 in a row: HTTP 400"
    assert [backoff.waiting(now) for now in (0.0, 119.0, 120.0)] == [said, said, None]
    assert backoff.failed(121.0, "429", at=NOON) == 240.0


@settings(deadline=None)
@given(st.lists(st.floats(0, 50), max_size=200))
def test_wakes_never_exceed_their_allowance(gaps: list[float]) -> None:
    """In any stretch of time no more wakes pass than the burst and what was refilled."""
    allowance, now, passed = WakeAllowance(6, 120), 0.0, 0
    for gap in gaps:
        now += gap
        if allowance.has_one(now):
            allowance.use()
            passed += 1
    assert passed <= 6 + now * 6 / 120 + 1e-6


def test_only_a_missing_model_counts_as_throttling() -> None:
    """An answer that is no throttling is not waited out as one."""
    ended = FinalResult(
        task_id="t", summary="no server", directive=Directive.ABANDON, stopped_by=StoppedBy.NO_MODEL
    )
    assert throttled_ending(ended) == "no model: no server"
    assert throttled_ending(ended.model_copy(update={"stopped_by": StoppedBy.TIME})) is None
    assert throttling(ModelRefused("bad key", status=401)) is None
    assert throttling(BudgetExhausted("spent", budget="tokens")) is None
    assert throttling(ModelUnreachable("x" * 500)) == f"no model: {'x' * 189}…"
