"""Every way in which a task ends, end to end: honest, complete, and never an exception."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from scenario import (
    Each,
    FastClock,
    Script,
    World,
    assert_causal,
    gives_up,
    judged,
    matches,
    moves,
    nothing,
    plan,
    read,
    says,
    shell,
    subtask,
)

from artoo import Artoo, Budgets, tool
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ExecutionResult, SubTaskOutcome, ToolCalled
from artoo.contracts.findings import Unconfirmed
from artoo.contracts.plan import SubTask
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult, Halt, RoleFailure
from artoo.loops.fast.agent_validator import AgentValidator
from artoo.loops.fast.executor import Executor
from artoo.loops.medium.endings import Endings
from artoo.loops.medium.meta_validator import MetaValidator
from artoo.loops.medium.perceiver import Perceiver
from artoo.loops.medium.solver import Solver
from artoo.testing import Asked, FakeClock, Reply, ScriptedServer, forbid_real_models, server_error, slow
from artoo.testing.replies import Scripted
from artoo.words.result import result_words

COUNT = "How many lines has a.txt?"
ONE = plan(subtask("count", tool="shell"))
LONG = 60.0
"""Seconds that nobody waits: the server lets go when the test ends."""


def two(world: World) -> Script:
    """Two parallel subtasks: one is done at once, the other never comes back."""
    world.file("a.txt", "x\ny\n")
    return {
        "Plan": plan(subtask("do the quick one", tool="shell"), subtask("do the endless one", tool="shell")),
        "ExecutorStep": Each.of(quick=shell("wc -l < a.txt"), endless=slow(shell("true"), LONG)),
    }


def on(kind: type, act: Callable[[Artoo, Envelope], None]) -> Callable[[Artoo, Envelope], Awaitable[None]]:
    """Acts once, at the first message of a kind."""
    done: list[bool] = []

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, kind) and not done:
            done.append(True)
            act(artoo, envelope)

    return during


async def test_cost_ends_a_task(world: World) -> None:
    """Ω at θ abandons, before anything else is considered, and says that the budget is nearly spent."""
    world.file("a.txt", "x\n")
    script = {
        "Plan": [plan(subtask("show", matches("q"), tool="shell")), plan(subtask("look", tool="read_file"))],
        "ExecutorStep": [shell("cat a.txt"), read("a.txt")],
        "FailureReport": moves("say what q is"),
    }
    config = world.config(control={"max_retries": 0, "theta": 0.2})
    ended = await world.play("Show the word.", script, config=config)
    assert ended.directives == ["break_symmetry", "abandon"]
    assert ended.result.stopped_by == "cost"
    assert "budget of rounds and time is nearly spent" in ended.told
    assert ended.result.next_moves == ("say what q is",)


async def test_next_moves_do_not_depend_on_a_model(world: World) -> None:
    """When the FailureReport cannot be had, a template says what to do; the failed call is on the stream."""

    def refusing(asked: Asked) -> Reply:  # in whatever form it is asked
        return server_error(501)

    script = {
        "Plan": plan(subtask("show", matches("q"), tool="shell")),
        "ExecutorStep": shell("echo no"),
        "FailureReport": refusing,
    }
    config = world.config(control={"max_retries": 0, "theta": 0.0})
    ended = await world.play("Show the word.", script, config=config)
    assert ended.result.stopped_by == "cost"
    assert ended.result.next_moves == ()
    assert ended.told.endswith("\n- give it more time (budget: seconds), or say more precisely what is wanted")
    assert ended.contracts[-1] == "FailureReport"


async def test_the_time_budget_cancels_running_work(world: World) -> None:
    """At 100 % of the time budget running work is cancelled, and what matched is delivered."""
    clock = FakeClock()
    late = on(SubTaskOutcome, lambda artoo, envelope: clock.advance(300.0))
    ended = await world.play("How many lines are there?", two(world), clock=clock, during=late)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "time")
    assert ended.result.done == ("do the quick one",) and ended.result.output == "2"
    assert "the time budget is spent (300 s)" in ended.told
    assert "give it more time" in ended.told
    assert ended.one(Halt).stopped_by == "time"
    assert ended.result.loss.Omega >= 0.4


async def test_a_deadline_caps_the_time_budget(world: World) -> None:
    """A deadline that the planner found in the request ends the task after 20 of its 300 seconds."""
    clock = FakeClock()
    script = {**two(world)}
    script["Plan"] = {
        **cast("dict[str, object]", script["Plan"]),
        "deadline": (clock.now() + timedelta(seconds=20)).isoformat(),
    }
    late = on(SubTaskOutcome, lambda artoo, envelope: clock.advance(20.0))
    ended = await world.play(
        "How many lines are there? Answer within 20 seconds.", script, clock=clock, during=late
    )
    assert ended.result.stopped_by == "time" and "(20 s)" in ended.told
    assert ended.all(SubTask)[0].deadline == FakeClock().now() + timedelta(seconds=20)


async def test_prompts_tell_the_time_where_the_person_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """At ten at night in UTC the next day has begun in Shanghai, and `date` in a command says so."""
    clock = FakeClock(start=datetime(2026, 2, 28, 22, 23, tzinfo=UTC))
    script: Script = {"Plan": ONE, "ExecutorStep": shell("echo hello")}
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        ended = await world.play("Say hello.", script, clock=clock)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert ended.one(UserRequest).east == 480
    assert "Now: 2026-03-01T06:23+08:00" in ended.asked("Plan")[0].user
    assert "Today: 2026-03-01" in ended.asked("ExecutorStep")[0].user


async def test_waiting_for_a_person_does_not_count(world: World) -> None:
    """Time between a ConfirmationRequest and its answer is not spent, however long it is."""
    clock = FakeClock()
    world.file("a.txt", "x\n")

    async def slow_person(request: ConfirmationRequest) -> Consent:
        await asyncio.sleep(0.01)  # R7 has read the question
        for _ in range(40):
            clock.advance(30.0)
            await clock.wait_for_sleepers()
        return Consent.ONCE

    script = {
        "Plan": plan(subtask("overwrite the file", tool="shell")),
        "ExecutorStep": shell("echo 7 > a.txt; cat a.txt; wc -l < a.txt"),
    }
    ended = await world.play(
        "Put 7 into a.txt. How many lines has it then?", script, clock=clock, confirm=slow_person
    )
    assert ended.directive == "accept"
    assert ended.result.cost.elapsed_ms == 0
    assert clock.monotonic() == 1_200.0
    assert (world.project / "a.txt").read_text() == "7\n"


async def test_the_call_budget_ends_a_task(world: World) -> None:
    """When the budget of calls is spent, nothing more is asked of a model, and the result says so."""
    world.file("a.txt", "x\n")
    script = {"Plan": ONE, "ExecutorStep": [shell("cat a.txt", final=False)]}
    ended = await world.play(COUNT, script, options=world.options(budgets=Budgets(calls=2)))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "calls")
    assert ended.result.cost.llm_calls == len(ended.requests) == 2
    assert "(budget: calls)" in ended.told


async def test_no_server_is_no_model(world: World) -> None:
    """A refused connection ends the task with `no_model` and what to do about it."""
    async with ScriptedServer({}) as server:
        gone = server.base_url
    with forbid_real_models(allow=True):
        async with world.artoo(gone, clock=FastClock()) as artoo:
            envelopes = [envelope async for envelope in artoo.stream(COUNT, options=world.options())]
    assert_causal(envelopes)
    result = envelopes[-1].payload
    assert isinstance(result, FinalResult)
    assert result.stopped_by == "no_model"
    assert "artoo doctor" in result_words("en").plain(result)


async def test_an_interrupt_ends_honestly(world: World) -> None:
    """`artoo.interrupt()` ends the task at once with what matched, and says that it was interrupted."""
    stop = on(SubTaskOutcome, lambda artoo, envelope: artoo.interrupt())
    ended = await world.play("How many lines are there?", two(world), during=stop)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "interrupted")
    assert ended.result.done == ("do the quick one",)
    assert ended.told.startswith("The task could not be completed: it was interrupted")


async def test_an_interrupt_after_a_written_answer_delivers_the_answer(world: World) -> None:
    """A validator is still judging it: the answer comes all the same, and is named as unverified."""
    world.file("a.txt", "x\ny\n")
    script: Script = {
        "Plan": plan(subtask("count", "the count is right", tool="shell"), criteria=["the count is right"]),
        "ExecutorStep": [shell("wc -l < a.txt", final=False), says("It has 2 lines.", 1)],
        "ValidationReport": lambda asked: slow(judged(("pass", "2")), LONG),  # may be asked, or not yet
    }
    stop = on(ExecutionResult, lambda artoo, envelope: artoo.interrupt())
    ended = await world.play(COUNT, script, during=stop)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "interrupted")
    assert ended.result.output == "It has 2 lines."
    assert Unconfirmed(looked=True) in ended.result.facts


@pytest.mark.parametrize("kind", ["UserRequest", "Plan", "ToolCalled"])
async def test_an_interrupt_at_any_moment_ends(world: World, kind: str) -> None:
    """Whenever it comes, also twice, an interrupt ends the task with one result."""
    world.file("a.txt", "x\n")
    script: dict[str, list[Scripted]] = {
        "Plan": [ONE],
        "ExecutorStep": [shell("cat a.txt", final=False), slow(shell("true"), LONG)],
    }
    first: list[Envelope] = []

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if envelope.kind == kind and not first:
            first.append(envelope)
            artoo.interrupt()
            artoo.interrupt()

    def everything(asked: Asked) -> Scripted:
        return script[asked.contract].pop(0)

    ended = await world.play(COUNT, everything, during=during)
    assert ended.result.stopped_by == "interrupted"


BROKEN: list[tuple[type, str, bool]] = [
    (Perceiver, "_perceive", False),
    (Executor, "_attempt", False),
    (AgentValidator, "_judge", False),
    (MetaValidator, "_judge", True),
    (MetaValidator, "_request", True),
    (Solver, "_deliver", True),
]


@pytest.mark.parametrize(("part", "method", "works"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
async def test_a_role_that_breaks_ends_the_task(
    world: World, monkeypatch: pytest.MonkeyPatch, part: type, method: str, works: bool
) -> None:
    """A bug in any role is reported with its traceback and ends the task honestly, never in silence."""
    world.file("a.txt", "x\n")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(part, method, broken)

    def everything(asked: Asked) -> Scripted:
        return ONE if asked.contract == "Plan" else shell("wc -l < a.txt")

    during = on(ToolCalled, lambda artoo, envelope: artoo.interrupt()) if method == "_request" else nothing
    ended = await world.play(COUNT, everything, during=during)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "internal")
    failure = ended.all(RoleFailure)[0]
    assert "RuntimeError: a bug" in failure.reason and "Traceback" in failure.detail
    assert "a bug" in ended.told
    assert ended.result.done == (("count",) if works and part is Solver else ended.result.done)


async def test_a_solver_that_cannot_even_abandon_still_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the ending itself is broken, a bare result is delivered instead of none."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no ending")

    monkeypatch.setattr(Endings, "abandon", broken)
    script = {"Plan": plan(subtask("show", matches("q"), tool="shell")), "ExecutorStep": gives_up("no")}
    ended = await world.play("Show it.", script, config=world.config(control={"max_retries": 0, "theta": 0.0}))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "internal")
    assert "no ending" in ended.told


async def test_what_was_withheld_is_said_first(world: World) -> None:
    """An act outside the view that was not done because nobody confirmed it marks the summary and is listed."""

    @tool(asks=True)
    def announce(text: str) -> str:
        """Tells everybody."""
        raise AssertionError("nobody has agreed to it")

    script = {
        "Plan": plan(subtask("tell everybody", tool="announce")),
        "ExecutorStep": [Reply('{"tool": "announce", "input": "hello"}'), gives_up("it is not possible here")],
        "ValidationReport": judged(("pass", "announce")),
    }
    config = world.config(control={"max_retries": 0, "theta": 0.0})
    ended = await world.play("Announce hello", script, config=config, tools=[announce])
    assert (ended.result.stopped_by, ended.result.summary[:6]) == ("refused_by_user", "[LAW1]")
    assert ended.result.withheld == ("announce hello",)
