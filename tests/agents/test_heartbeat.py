"""The heartbeat: beats on a grid, each accounted for once, and no model asked without work."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulse_doubles import BookLedger, ScriptedDuty, World

from artoo.agents.heartbeat.backoff import Backoff, WakeAllowance
from artoo.agents.heartbeat.beat_accounting import Accounts
from artoo.agents.heartbeat.beat_grid import Beat, after_absence, checked_interval, reckon
from artoo.agents.heartbeat.duties import Done, throttled_ending, throttling
from artoo.agents.heartbeat.heartbeat import Heartbeat, HeartbeatSettings
from artoo.contracts.agents import AgentWoken, ClockJumped, PulseRecorded
from artoo.contracts.errors import BudgetExhausted, ConfigurationError, ModelRefused, ModelUnreachable, ToolError
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.testing.clock import FakeClock

MINUTE, HOUR = 60.0, 3_600.0
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger() -> BookLedger:
    return BookLedger()


@pytest.fixture
def world(clock: FakeClock, ledger: BookLedger) -> World:
    return World(clock, ledger)


@pytest.mark.parametrize("seconds", [10, 59.9, 300.1, 3600, float("nan")])
def test_an_interval_outside_one_to_five_minutes_is_refused_with_the_reason(
    seconds: float, clock: FakeClock, ledger: BookLedger
) -> None:
    """Too short storms the model, too long leaves mail lying: both are refused before anything starts."""
    with pytest.raises(ConfigurationError, match="60 to 300 seconds: shorter pulses storm the model"):
        Heartbeat(
            Accounts("ada", ledger, clock),
            (),
            clock,
            backoff=Backoff(120, lambda: 0.0),
            settings=HeartbeatSettings(interval=seconds),
        )
    assert checked_interval(60) == 60
    assert checked_interval(300) == 300


@settings(deadline=None)
@given(elapsed=st.floats(0, 1e7), interval=st.floats(60, 300))
def test_every_beat_of_the_grid_is_held_missed_or_still_to_come(elapsed: float, interval: float) -> None:
    """Whenever one looks, the beats since the last are: those missed, then one, without a gap or a repetition."""
    start = FakeClock().now()
    last = Beat(7, start)
    reckoning = reckon(last, start + timedelta(seconds=elapsed), interval)
    first, final = reckoning.missed or (reckoning.beat, last)
    assert first.number == 8
    assert final.number == reckoning.beat.number - 1
    assert reckoning.wait <= interval + 1e-3
    late = (start + timedelta(seconds=elapsed) - reckoning.beat.due_at).total_seconds()
    assert late < interval + 1e-3


def test_an_absence_in_which_the_clock_went_back_starts_the_grid_again() -> None:
    """A last beat that lies in the future cannot be waited for."""
    now = FakeClock().now()
    ahead = Beat(9, now + timedelta(hours=1))
    anchor, back = after_absence(ahead, now, 120)
    assert (anchor.number, back) == (9, -3600)
    assert reckon(anchor, now, 120).beat == Beat(10, now)
    assert after_absence(Beat(9, now), now, 120) == (Beat(9, now), 0.0)


async def test_an_idle_agent_looks_at_every_beat_and_asks_nobody(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Without work an hour is 31 beats: looked, nothing to do, no model call."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(HOUR)
    assert ledger.assert_complete() == 31
    assert set(ledger.outcomes()) == {"idle"}
    assert (duty.llm_calls, sum(pulse.llm_calls for pulse in ledger.pulses())) == (0, 0)


async def test_work_is_done_at_the_beat_until_none_is_left(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """A pulse with work is a run; it tells what was done and at how many model calls."""
    mail, tasks = ScriptedDuty(clock), ScriptedDuty(clock, "tasks")
    async with world.beating([mail, tasks]):
        mail.waiting, tasks.waiting = 2, 3
        await world.live(130)
    first, second = ledger.pulses()
    assert (first.outcome, second.outcome, second.llm_calls) == ("idle", "run", 5)
    assert second.why == "mail ×2, tasks ×3"


async def test_work_in_one_pulse_is_bounded_and_shared_among_the_duties(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """A duty that never runs dry neither starves another nor keeps the pulse for ever."""
    mail, patrol = ScriptedDuty(clock), ScriptedDuty(clock, "patrol")
    mail.waiting, patrol.waiting = 1_000, 1
    async with world.beating([mail, patrol], settings=HeartbeatSettings(items=4)):
        await world.live(10)
    assert ledger.pulses()[0].why == "mail ×3, patrol ×1"


async def test_a_beat_that_falls_into_work_is_skipped_and_never_overlaps(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Work of five minutes skips the two beats inside it, with the reason, and runs alone."""
    duty = ScriptedDuty(clock, seconds=5 * MINUTE)
    duty.waiting = 1
    async with world.beating([duty]):
        await world.live(7 * MINUTE)
    assert ledger.outcomes() == ["run", "skipped", "skipped", "idle"]
    assert ledger.pulses()[1].why == "still busy: mail"
    assert duty.most_at_once == 1
    ledger.assert_complete()


async def test_a_machine_that_slept_misses_beats_and_makes_up_for_none(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Eight hours of sleep are one record of what was missed and one beat, not 240 beats in a burst."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(60)
        clock.jump(8 * HOUR)
        await world.live(70)
    missed = [pulse for pulse in ledger.pulses() if pulse.outcome == "missed"]
    assert [pulse.count for pulse in missed] == [240]
    assert ledger.outcomes() == ["idle", "missed", "idle"]
    assert [record.seconds for record in ledger.told if isinstance(record, ClockJumped)] == [8 * HOUR]
    ledger.assert_complete()


async def test_beats_while_artoo_was_down_are_missed_when_it_starts_again(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """At the start due times are compared with the last beat that was recorded."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(10)
    clock.advance(HOUR)
    async with world.beating([duty]):
        await world.live(10)
    assert [(pulse.outcome, pulse.count) for pulse in ledger.pulses()] == [("idle", 1), ("missed", 29), ("idle", 1)]
    ledger.assert_complete()


async def test_a_quick_restart_keeps_the_grid_and_looks_at_once(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Within the interval no beat is due, but what arrived meanwhile is not left lying."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]):
        await world.live(10)
    duty.waiting = 1
    async with world.beating([duty]):
        await world.live(10)
        assert duty.waiting == 0
        await world.live(120)
    assert [pulse.due_at for pulse in ledger.pulses()] == [
        FakeClock().now(),
        FakeClock().now() + timedelta(seconds=120),
    ]
    assert [(woken.cause, woken.llm_calls) for woken in ledger.told if isinstance(woken, AgentWoken)] == [
        ("artoo has started", 1)
    ]


async def test_a_run_that_a_dead_process_left_is_ended_at_the_next_start(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """The beat stays a run, once; nothing claims that it was finished."""
    now = clock.now()
    unfinished = PulseRecorded(agent="ada", due_at=now, at=now, outcome="run", why="not finished")
    await ledger.begin(Beat(1, now), unfinished)
    clock.advance(500)
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(1)
    assert next((pulse.outcome, pulse.why) for pulse in ledger.pulses()) == ("run", "cut short: the process ended")
    ledger.assert_complete()


async def test_a_clock_set_back_is_a_recorded_decision_and_no_beat_is_held_twice(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """The beats keep their distance by the steady clock; their numbers go on."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(60)
        clock.jump(-HOUR)
        await world.live(10 * MINUTE)
    assert ledger.assert_complete() == 6
    assert set(ledger.outcomes()) == {"idle"}
    assert [round(record.seconds) for record in ledger.told if isinstance(record, ClockJumped)] == [-3600]


async def test_a_clock_set_back_while_artoo_was_down_starts_the_beats_again(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """A last beat in the future is no reason to stay silent until then."""
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    clock.jump(-24 * HOUR)
    async with world.beating([ScriptedDuty(clock)]):
        await world.live(10)
    assert ledger.outcomes() == ["idle", "idle"]
    assert [record.decision for record in ledger.told if isinstance(record, ClockJumped)] == [
        "artoo was away and the clock went back: the beats start again now"
    ]


async def test_mail_wakes_at_once(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """Mail that arrives a second after a beat is answered in that second, not 119 seconds later."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty]) as heart:
        await world.live(1)
        duty.waiting = 1
        heart.wake("mail from grace")
        await world.live(1)
    assert duty.at == [1.0]
    woken = [record for record in ledger.told if isinstance(record, AgentWoken)]
    assert [(each.cause, each.outcome, each.llm_calls) for each in woken] == [("mail from grace", "run", 1)]


async def test_a_storm_of_mail_cannot_storm_the_model(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """A thousand wakes in a minute are as many looks as allowed; the rest waits for the beat, told once."""
    duty = ScriptedDuty(clock)
    async with world.beating([duty], settings=HeartbeatSettings(items=1, wakes=6)) as heart:
        await world.live(1)
        for _ in range(1_000):
            duty.waiting += 1
            heart.wake("mail")
            await world.live(0.05)
    woken = [record for record in ledger.told if isinstance(record, AgentWoken)]
    assert sum(each.outcome == "run" for each in woken) <= 6 + 3
    assert sum(each.outcome == "deferred" for each in woken) == 1
    assert duty.llm_calls <= 10


async def test_wakes_for_bounded_work_are_not_counted(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """Work whose number somebody bounds already is done at once, however often; a letter after it still is."""
    duty = ScriptedDuty(clock)
    duty.results = [Done(items=1, llm_calls=1, bounded=1)] * 30
    async with world.beating([duty], settings=HeartbeatSettings(items=1, wakes=2)) as heart:
        await world.live(1)
        for _ in range(31):
            duty.waiting += 1
            heart.wake("work")
            await world.live(0.05)
    woken = [record for record in ledger.told if isinstance(record, AgentWoken)]
    assert [each.outcome for each in woken] == ["run"] * 31


async def test_a_wake_during_work_is_not_lost(world: World, ledger: BookLedger, clock: FakeClock) -> None:
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
    assert ledger.outcomes() == ["run"]


async def test_throttling_backs_off_and_success_forgets_it(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Each 429 doubles the wait up to an hour; beats in it are skipped with the reason; one success ends it."""
    duty = ScriptedDuty(clock)
    duty.waiting, duty.throttled = 1, True
    async with world.beating([duty]) as heart:
        await world.live(12 * HOUR)
        heart.wake("mail")
        await world.settle()
        duty.throttled = False
        await world.live(2 * HOUR)
    gaps = [later - earlier for earlier, later in zip(duty.at, duty.at[1:], strict=False)]
    assert gaps[:5] == [120, 240, 480, 960, 1920]
    assert max(gaps) <= HOUR + 120
    skipped = [pulse for pulse in ledger.pulses() if pulse.outcome == "skipped"]
    assert all(pulse.why.startswith("backing off until ") and "429" in pulse.why for pulse in skipped)
    assert ledger.outcomes()[-1] == "idle"
    assert duty.waiting == 0
    ledger.assert_complete()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModelUnreachable("no server at :1"), "no model: no server at :1"),
        (ModelRefused("too many", status=429), "429: too many"),
        (ToolError("broken"), "mail failed: broken"),
    ],
)
async def test_errors_of_the_work_are_recorded_and_backed_off_from(
    world: World, ledger: BookLedger, clock: FakeClock, error: Exception, why: str
) -> None:
    """Whatever artoo itself raises ends the pulse, not the agent."""
    duty = ScriptedDuty(clock)
    duty.waiting = 1
    duty.results.append(error)
    async with world.beating([duty]):
        await world.live(130)
    assert ledger.pulses()[0].why == f"mail ×0; backing off: {why}"
    assert duty.waiting == 0
    ledger.assert_complete()


async def test_agents_of_one_endpoint_wait_together_but_not_for_each_others_troubles(
    world: World, ledger: BookLedger, clock: FakeClock
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
    assert any("429" in pulse.why for pulse in ledger.pulses("grace"))


async def test_work_that_cannot_be_looked_for_is_skipped_and_told(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """A database that cannot be read is no idle beat."""

    class Blind(ScriptedDuty):
        async def due(self) -> str | None:
            raise ToolError("locked")

    async with world.beating([Blind(clock)]) as heart:
        await world.live(1)
        heart.wake("mail")
        await world.live(1)
    assert [(pulse.outcome, pulse.why) for pulse in ledger.pulses()] == [("skipped", "could not look: locked")]


async def test_a_paused_agent_skips_and_says_so(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """Neither a beat nor a wake moves a paused agent, and it does not even look."""

    async def paused() -> str | None:
        return "the operator paused it"

    duty = ScriptedDuty(clock)
    duty.waiting = 1
    async with world.beating([duty], paused=paused) as heart:
        heart.wake("mail")
        await world.live(121)
        heart.wake("mail")
        await world.live(1)
    assert {(pulse.outcome, pulse.why) for pulse in ledger.pulses()} == {
        ("skipped", "paused: the operator paused it")
    }
    assert duty.looks == 0
    assert all(record.outcome == "deferred" for record in ledger.told if isinstance(record, AgentWoken))


async def test_an_agent_that_cannot_be_asked_about_is_skipped(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """Whether it is paused cannot be told: then it does nothing, and says why."""

    async def gone() -> str | None:
        raise ToolError("there is no agent ada")

    duty = ScriptedDuty(clock)
    duty.waiting = 1
    async with world.beating([duty], paused=gone):
        await world.live(1)
    assert ledger.pulses()[0].why == "could not look: there is no agent ada"
    assert duty.looks == 0


async def test_stopping_lets_work_finish_within_the_grace(
    world: World, ledger: BookLedger, clock: FakeClock
) -> None:
    """What ends within the bound ends whole."""
    duty = ScriptedDuty(clock, seconds=10)
    duty.waiting = 1
    async with world.beating([duty], settings=HeartbeatSettings(grace=20)):
        await world.live(1)
    assert [(pulse.outcome, pulse.why) for pulse in ledger.pulses()] == [("run", "mail ×1")]


async def test_stopping_cancels_work_beyond_the_grace(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """What does not end in time is cancelled, and its beat says so."""
    duty = ScriptedDuty(clock, seconds=1_000)
    duty.waiting = 1
    async with world.beating([duty], settings=HeartbeatSettings(grace=20)):
        await world.live(1)
    assert clock.monotonic() < 100
    assert [(pulse.outcome, pulse.why) for pulse in ledger.pulses()] == [("run", "nothing done; cut short")]


async def test_cancelling_the_heart_accounts_for_its_run(
    ledger: BookLedger, clock: FakeClock, world: World
) -> None:
    """Ctrl-C in the middle leaves no beat without an account."""
    duty = ScriptedDuty(clock, seconds=1_000)
    duty.waiting = 1
    accounts = Accounts("ada", ledger, clock)
    heart = Heartbeat(accounts, [duty], clock, backoff=Backoff(120, lambda: 0.0))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(heart.run())
        await clock.wait_for_sleepers(2)
        running.cancel()
    assert ledger.outcomes() == ["run"]
    assert world.clock is clock


STEPS = st.tuples(st.sampled_from(("live", "jump", "restart", "work", "wake")), st.floats(-4_000, 4_000))


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_beats_are_complete_and_come_in_no_burst(steps: list[tuple[str, float]]) -> None:
    """Any mix of time, jumps, restarts, long work and wakes: each beat once, no overlap, one for each cause."""
    clock, ledger = FakeClock(), BookLedger()
    duty = ScriptedDuty(clock, seconds=200)

    async def lives() -> None:
        world = World(clock, ledger)
        parts: list[list[tuple[str, float]]] = [[]]
        for step in steps:
            parts.append([]) if step[0] == "restart" else parts[-1].append(step)
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

    asyncio.run(lives())
    ledger.assert_complete()
    held = sum(pulse.outcome != "missed" for pulse in ledger.pulses())
    causes = 1 + sum(kind in ("jump", "restart") for kind, _ in steps)
    assert held <= clock.monotonic() / 120 + causes
    assert duty.most_at_once <= 1


@settings(deadline=None)
@given(
    failures=st.integers(1, 60),
    jitter=st.floats(0, 1, exclude_max=True),
    first=st.floats(60, 300),
)
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
    backoff.failed(now, "429", at=NOON)
    backoff.succeeded()
    assert backoff.waiting(now) is None


def test_agents_that_are_throttled_at_once_are_throttled_once() -> None:
    """Five failures of one storm wait as long as one: they do not add up to half an hour."""
    backoff = Backoff(120.0, lambda: 1.0)
    assert [backoff.failed(float(at), "429", at=NOON) for at in range(5)] == [120.0, 119.0, 118.0, 117.0, 116.0]
    assert backoff.failed(121.0, "429", at=NOON) == 240.0


def test_a_wait_says_until_when_and_after_how_many_failures() -> None:
    """The same text all the while, whoever shares the wait: beats that are skipped for it share a row."""
    backoff = Backoff(120.0, lambda: 1.0)
    backoff.failed(0.0, "HTTP 401: check the key", at=NOON)
    backoff.failed(60.0, "something else", at=NOON + timedelta(seconds=60))
    said = "backing off until 12:02 UTC, after 1 in a row: HTTP 401: check the key"
    assert [backoff.waiting(now) for now in (0.0, 119.0, 120.0)] == [said, said, None]


@settings(deadline=None)
@given(st.lists(st.floats(0, 50), max_size=200))
def test_wakes_never_exceed_their_allowance(gaps: list[float]) -> None:
    """In any stretch of time no more wakes pass than the burst and what was refilled."""
    allowance, now, passed = WakeAllowance(6, 120), 0.0, 0
    for gap in gaps:
        now += gap
        passed += allowance.take(now)
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


async def test_no_progress_is_no_endless_pulse(world: World, ledger: BookLedger, clock: FakeClock) -> None:
    """A duty that stays due and does nothing gets one turn a pulse."""
    duty = ScriptedDuty(clock)
    duty.waiting = 1
    duty.results.extend([Done()] * 5)
    async with world.beating([duty]):
        await world.live(1)
    assert len(duty.at) == 1
