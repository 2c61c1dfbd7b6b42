"""Jobs of the lab run through the real roles, in time that does not pass."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest

from artoo.control.hyperparameters import Hyperparameters
from lab.laws import AlwaysChange, Anew, Arm, Law, Oracle, Reflexion, Retry, Version07, magentic, rounds
from lab.running import Trace, run_job
from lab.time import LabClock, VirtualLoop
from lab.world import CALM, FAULTY, World, draw, effect, job_of

T = TypeVar("T")
SURE = World(parts=1, hopeless=0.0, big=0.0, chained=0.0, foresight=1.0, skill=1.0)
LAW = Arm("the law", Law)


def play(work: Coroutine[None, None, T]) -> T:
    """In virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def traces(world: World, arm: Arm, count: int = 12) -> list[Trace]:
    async def all_of_them() -> list[Trace]:
        return [await run_job(world, job_of(world, 7, number), arm, 7) for number in range(count)]

    return play(all_of_them())


def test_time_passes_only_while_everybody_waits() -> None:
    """An hour of sleep takes no time, and threads' work is done at once."""

    async def sleep() -> tuple[float, int]:
        before = LabClock().monotonic()
        await LabClock().sleep(3_600.0)
        return LabClock().monotonic() - before, await asyncio.to_thread(lambda: 7)

    started = time.monotonic()
    assert play(sleep()) == (pytest.approx(3_600.0), 7)  # pyright: ignore[reportUnknownMemberType]
    assert time.monotonic() - started < 60.0


def test_a_thread_wakes_virtual_time() -> None:
    """Where there is no timer, a real thread's result is waited for, and arrives."""
    go = threading.Event()

    async def wait() -> int:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as threads:
            found = loop.run_in_executor(threads, lambda: go.wait(60.0) and 7)
            loop.call_soon(go.set)
            return int(await found)

    assert play(wait()) == 7


def test_a_job_that_is_easy_costs_two_calls() -> None:
    """Right tool, sure hand: one plan, one step, accepted by checks alone; six seconds of the world's time."""
    (trace,) = traces(SURE, LAW, 1)
    assert (trace.directive, trace.solved, trace.calls, trace.steps) == ("accept", True, 2, 1)
    assert trace.seconds == pytest.approx(SURE.think * 2 + SURE.act)  # pyright: ignore[reportUnknownMemberType]
    assert trace.decided[-1].state == "accept"


def test_a_task_ends_where_no_other_approach_is_left_if_that_is_set() -> None:
    """Of two tools neither can do it: the second that failed is the last. By the defaults every replan is used."""
    hopeless = World(parts=1, hopeless=1.0, tools=2, big=0.0, fluke=0.0)
    patient = Hyperparameters(max_replans=6, time_budget_ms=10_000_000, delta=0.0)
    (ended,) = traces(hopeless, Arm("ends", Law, replace(patient, exhausted_after=1)), 1)
    (went_on,) = traces(hopeless, Arm("goes on", Law, patient), 1)
    assert ended.directive == went_on.directive == "abandon"
    assert ended.calls < went_on.calls


def test_the_same_seed_makes_the_same_run() -> None:
    """Every figure of two runs is equal."""
    assert traces(FAULTY, LAW) == traces(FAULTY, LAW)


def test_a_wrong_tool_is_logical_and_is_blocked() -> None:
    """With a first guess that is never right, the law breaks symmetry by P = 1, and another tool is used."""
    found = traces(World(parts=1, hopeless=0.0, big=0.0, foresight=0.0, mirage=0.0, fluke=0.0, heed=1.0), LAW)
    assert all(each.decided[0].implausibility == 1.0 for each in found)
    assert {each.decided[0].state for each in found} == {"break_symmetry"}
    assert any(each.solved for each in found)
    assert all(each.redundant <= 2 * len(each.rounds) for each in found)  # a correction may repeat, a plan may not


def test_a_broken_world_is_environmental() -> None:
    """Calls that are always cut off leave P at 0: the law changes the path, and gives up in the end."""
    (trace,) = traces(World(parts=1, hopeless=0.0, foresight=1.0, outage=1.0), LAW, 1)
    assert {each.implausibility for each in trace.decided} == {0.0}
    assert trace.decided[0].state == "change_path" and trace.directive == "abandon"


def test_retry_makes_the_same_plan_and_the_others_do_not() -> None:
    """Without corrections a wrong tool is called once a round; only naive retry calls nothing else."""
    world = World(parts=1, hopeless=0.0, big=0.0, foresight=0.0, mirage=0.0, fluke=0.0, stubborn=0.0, wander=0.0)
    h = Hyperparameters(max_replans=3, max_retries=0, time_budget_ms=10_000_000)
    same, anew = (traces(world, Arm("", law, h)) for law in (Retry, Anew))
    assert all(each.redundant == each.steps - 1 and not each.solved for each in same)
    assert any(each.solved for each in anew)


def test_the_oracle_is_never_worse() -> None:
    """It solves what can be solved, and stops at once where nothing can help."""
    oracle, law = traces(CALM, Arm("oracle", Oracle, rounds(5)), 30), traces(CALM, LAW, 30)
    assert sum(each.solved for each in oracle) >= sum(each.solved for each in law)
    hopeless = [each for each in oracle if each.can < each.criteria]
    assert hopeless and all(len(each.rounds) == 1 for each in hopeless)


@pytest.mark.parametrize("law", [Reflexion, magentic(0), AlwaysChange, Version07])
def test_every_law_ends_every_job(law: type[Law]) -> None:
    """Whatever decides, a job ends, and what it claims to have met is bounded by what can be met."""
    for each in traces(FAULTY, Arm("", law, rounds(2)), 6):
        assert each.directive in ("accept", "success", "abandon")
        assert each.met <= each.criteria and 1 <= len(each.rounds) <= 3
        assert [one.calls for one in each.rounds] == sorted(one.calls for one in each.rounds)


def test_extra_calls_are_counted() -> None:
    """A reflection is a model call: with it the same rounds cost more than without."""
    world = World(parts=1, hopeless=1.0, big=0.0)
    (notes,), (anew,) = (traces(world, Arm("", law, rounds(2)), 1) for law in (Reflexion, Anew))
    assert len(notes.rounds) == len(anew.rounds) == 3
    assert notes.calls == anew.calls + 2


def test_draws_belong_to_their_key() -> None:
    """The same key, the same number; about uniform over keys; and outcomes depend on nothing else."""
    assert draw(1, "a") == draw(1, "a") != draw(1, "b")
    assert 0.45 < sum(draw("u", number) for number in range(2_000)) / 2_000 < 0.55
    job = job_of(FAULTY, 3, 4)
    part = job.parts[0]
    uses = [(tool, place, 0) for tool in FAULTY.names for place in range(4)]
    first = [effect(FAULTY, job, part, part.criteria, use, 3) for use in uses]
    assert first == [effect(FAULTY, job, part, part.criteria, use, 3) for use in reversed(uses)][::-1]
