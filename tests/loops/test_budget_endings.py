"""A task that runs out of calls, tokens or money says which, delivers what it has, and names the cost."""

from __future__ import annotations

import json

import pytest
from scenario import Script, World, judged, plan, python, shell, subtask

from artoo import Budgets, ConfigurationError
from artoo.cli.display.symbols import cost_line
from artoo.cli.results.result_json import as_json, exit_code
from artoo.contracts.events import ModelCalled
from artoo.contracts.findings import Unjudged
from artoo.contracts.solution import StoppedBy
from artoo.runtime.changes.find_pending import pendings
from artoo.sandbox.backends.select import open_backend
from artoo.testing import Asked, FakeClock, ScriptedServer, slow
from artoo.testing.replies import Scripted
from artoo.words.catalogue import ENGLISH

COUNT = "How many lines has a.txt?"
PRICES = {"currency": "EUR", "models": {"scripted": {"prompt": 100, "cached": 50, "completion": 400}}}


@pytest.mark.parametrize(
    ("limit", "why", "hint"),
    [
        ({"calls": 1}, StoppedBy.CALLS, "(budget: calls)"),
        ({"tokens": 200}, StoppedBy.TOKENS, "(budget: tokens)"),
        ({"money": 0.0001}, StoppedBy.MONEY, "(budget: money)"),
    ],
)
async def test_the_budget_that_ended_a_task_is_named(
    world: World, limit: dict[str, float], why: StoppedBy, hint: str
) -> None:
    """The plan uses the budget up; the result says which one it was, and how to raise it."""
    world.file("a.txt", "x\n")
    script = {"Plan": plan(subtask("count them all", tool="shell"))}
    ended = await world.play(COUNT, script, config=world.config(limits=limit, prices=PRICES))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", why)
    assert hint in ended.told
    assert ended.result.cost.llm_calls == 1
    assert exit_code(ended.result) == 1


@pytest.mark.parametrize("verify", [False, True])
async def test_a_result_that_nobody_could_judge_is_delivered(world: World, verify: bool) -> None:
    """The budget is spent when the answer is there: it is delivered, and what was not judged says so and why."""
    world.file("a.txt", "x\n")
    part = subtask("count them all", "the number of lines", tool="shell")
    script = {"Plan": plan(part), "ExecutorStep": shell("wc -l < a.txt")}
    options = world.options(verify=verify)
    ended = await world.play(COUNT, script, config=world.config(limits={"calls": 2}), options=options)
    assert (ended.directive, ended.result.output.strip()) == ("success", "1")
    assert (ended.result.assurance, ended.result.cost.tool_calls) == ("unverified", 1)
    assert "the number of lines" in ended.result.open
    said = [fact.said for fact in ended.result.facts if isinstance(fact, Unjudged)]
    assert len(said) == 1 and "raise it with `calls` of its limits" in said[0]


@pytest.mark.parametrize("passed", [295.5, 294.9])
async def test_a_result_that_a_judge_had_no_time_for_is_delivered(world: World, passed: float) -> None:
    """The judge is not asked any more, or given up while it thinks: the result is not lost with it."""
    world.file("a.txt", "x\n")
    clock = FakeClock()

    def late(asked: Asked) -> Scripted:
        clock.advance(passed)
        return shell("wc -l < a.txt")

    def thinks_on(asked: Asked) -> Scripted:
        return slow(judged(("pass", "1")), 600.0)

    script: Script = {
        "Plan": plan(subtask("count them all", "the number of lines", tool="shell")),
        "ExecutorStep": late,
        "ValidationReport": thinks_on,
    }
    ended = await world.play(COUNT, script, clock=clock)
    assert (ended.directive, ended.result.output.strip(), ended.result.stopped_by) == ("success", "1", None)
    assert (ended.result.assurance, "the number of lines" in ended.result.open) == ("unverified", True)
    said = [fact.said for fact in ended.result.facts if isinstance(fact, Unjudged)]
    assert len(said) == 1 and "raise it with `seconds` of its limits" in said[0]
    failed = [call.failure for call in ended.all(ModelCalled) if call.failure is not None]
    assert [(each.nature, each.budget) for each in failed] == [("budget", "time")]


async def test_a_task_that_stops_names_every_tool_call(world: World) -> None:
    """Calls of a part that came to no end count too."""
    world.file("a.txt", "x\n")
    step = shell("wc -l < a.txt", final=False)
    script = {"Plan": plan(subtask("count them all", tool="shell")), "ExecutorStep": step}
    ended = await world.play(COUNT, script, config=world.config(limits={"calls": 2}))
    assert (ended.result.stopped_by, ended.result.cost.tool_calls) == (StoppedBy.CALLS, 1)


async def test_what_a_task_cost_is_in_its_result(world: World) -> None:
    """With prices, result, JSON and cost line name the amount; it is the sum of what each call paid."""
    world.file("a.txt", "x\n")
    script = {"Plan": plan(subtask("count them all", tool="shell")), "ExecutorStep": shell("wc -l < a.txt")}
    ended = await world.play(COUNT, script, config=world.config(prices=PRICES))
    money = ended.result.cost.money
    assert money is not None
    assert money.amount == pytest.approx(sum(call.money or 0 for call in ended.all(ModelCalled)))
    assert money.amount > 0
    assert json.loads(as_json(ended.result))["cost"]["money"]["currency"] == "EUR"
    assert " EUR" in cost_line(ended.result.cost, ENGLISH, rounds=1)


async def test_a_limit_of_money_without_a_price_starts_nothing(world: World) -> None:
    """The model has no price: the error names it and what to write, before any message."""
    async with ScriptedServer({}) as server, world.artoo(server.base_url) as artoo:
        with pytest.raises(ConfigurationError, match=r"scripted has none; write it below prices\.models"):
            await artoo.run(COUNT, options=world.options(budgets=Budgets(money=0.5)))
        assert artoo.bus.open_tasks == 0
        assert server.player.requests == []


async def test_what_was_done_before_the_calls_were_spent_waits(world: World) -> None:
    """The subtask had no end, and its fork is the person's all the same: it waits, and can be applied."""
    if (await open_backend(world.home)).name == "none":
        pytest.skip("no tier that stages changes works here")
    step = python("open('total.md', 'w').write('42')", final=False)
    script = {"Plan": plan(subtask("sum them up", tool="python")), "ExecutorStep": step}
    ended = await world.play("Write total.md", script, config=world.config(limits={"calls": 2}))
    assert (ended.result.stopped_by, ended.result.changes.state) == (StoppedBy.CALLS, "pending")
    assert [one.path for one in ended.result.changes.changes] == [str(world.project / "total.md")]
    (waiting,) = pendings(world.config())
    assert (waiting.cut_off, waiting.resumable, len(waiting.counts)) == (False, False, 1)
    assert (await waiting.apply()).state == "applied"
    assert (world.project / "total.md").read_text() == "42"
