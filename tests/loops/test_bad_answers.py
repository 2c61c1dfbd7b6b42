"""The same task, answered in every bad form that models and servers know: right, or an honest failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest
from scenario import FastClock, Json, World, judged, plan, subtask

from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import PlanRefused
from artoo.testing import (
    Asked,
    Reply,
    cut,
    cut_connection,
    empty,
    fenced,
    null_content,
    prose,
    reasoned,
    server_error,
    stall,
    thinking,
    too_many_requests,
    with_body,
    wrong_types,
)
from artoo.testing.replies import Scripted

REQUEST = "Show what a.txt says about the sky."
PLAN = plan(subtask("show the file", "it says the colour", tool="shell"))
STEP: Json = {"tool": "shell", "input": "cat a.txt", "is_final": True}
REPORT = judged(("pass", "the sky is blue"))
GOOD: dict[str, Json] = {"Plan": PLAN, "ExecutorStep": STEP, "ValidationReport": REPORT}

# Each makes the replies to one question from the good answer: the bad form, and what follows it.
READ_AT_ONCE: dict[str, Callable[[Json], list[Scripted]]] = {
    "fence": lambda good: [fenced(good)],
    "fence without a language": lambda good: [fenced(good, "")],
    "thoughts": lambda good: [thinking(good)],
    "thoughts without end": lambda good: [thinking(good, closed=False)],
    "prose around": lambda good: [prose(good)],
    "separate reasoning": lambda good: [reasoned(good)],
    "wrapped": lambda good: [{"answer": good}],
    "an unknown field": lambda good: [{**good, "confidence": 0.9}],
}
MENDED: dict[str, Callable[[Json], list[Scripted]]] = {
    "cut": lambda good: [cut(good), good],
    "wrong types": lambda good: [wrong_types(good), good],
    "empty": lambda good: [empty(), good],
    "null": lambda good: [null_content(), good],
    "no JSON": lambda good: ['{"I would rather not say.', good],
    "another object": lambda good: [{"weather": "fine"}, good],
}
RETRIED: dict[str, Callable[[Json], list[Scripted]]] = {
    "429 with Retry-After": lambda good: [too_many_requests(1), good],
    "500 twice": lambda good: [server_error(), server_error(503), good],
    "cut connection": lambda good: [cut_connection(good), good],
    "stall": lambda good: [stall(0.1), good],
    "200 without a completion": lambda good: [Reply(status=502, error="bad gateway"), good],
}
ENDLESS: dict[str, Reply] = {"500": server_error(), "stall": stall(0.05), "cut": cut_connection()}
ROLES = list(GOOD)
TEXT_DIALECT = ["native"]
"""A server without function calling hears the executor's steps as text; natively, any text is an answer."""


def script_with(role: str, replies: list[Scripted]) -> dict[str, list[Scripted]]:
    script: dict[str, list[Scripted]] = {name: [good] for name, good in GOOD.items()}
    return {**script, role: replies}


def each_once(forms: Iterable[str]) -> list[object]:
    """Every form with one of the roles in turn; with all of them under the mark `torture`."""
    forms = list(forms)
    shown = {(ROLES[at % len(ROLES)], form) for at, form in enumerate(forms)}
    pairs = [
        (role, form) for role in ROLES for form in forms if (role, form) != ("ExecutorStep", "thoughts without end")
    ]
    return [pytest.param(*pair, marks=[] if pair in shown else pytest.mark.torture) for pair in pairs]


@pytest.mark.parametrize(("role", "form"), each_once(READ_AT_ONCE))
async def test_a_bad_form_is_read_at_once(world: World, role: str, form: str) -> None:
    """A right answer in a strange dress costs no second request, whichever role hears it."""
    world.file("a.txt", "the sky is blue\n")
    ended = await world.play(REQUEST, script_with(role, READ_AT_ONCE[form](GOOD[role])), refuse=TEXT_DIALECT)
    assert (ended.directive, ended.result.output) == ("accept", "the sky is blue")
    assert len(ended.requests) == 3


async def test_a_step_in_a_thought_without_end_is_not_taken(world: World) -> None:
    """Whoever still thinks has not decided: the step is asked for again."""
    world.file("a.txt", "the sky is blue\n")
    thought = thinking({**STEP, "input": "rm a.txt"}, closed=False)
    ended = await world.play(REQUEST, script_with("ExecutorStep", [thought, STEP]), refuse=TEXT_DIALECT)
    assert (ended.directive, ended.result.output) == ("accept", "the sky is blue")
    assert [call.input for call in ended.calls] == ["cat a.txt"]
    assert [call.contract for call in ended.all(ModelCalled) if call.repaired] == ["ExecutorStep"]


@pytest.mark.parametrize(("role", "form"), each_once(MENDED))
async def test_a_bad_answer_is_mended(world: World, role: str, form: str) -> None:
    """An answer without valid content is asked for again once, with what was wrong, and the task goes on."""
    world.file("a.txt", "the sky is blue\n")
    ended = await world.play(REQUEST, script_with(role, MENDED[form](GOOD[role])), refuse=TEXT_DIALECT)
    assert (ended.directive, ended.result.output) == ("accept", "the sky is blue")
    assert [call.contract for call in ended.all(ModelCalled) if call.repaired] == [role]


@pytest.mark.parametrize(("role", "form"), each_once(RETRIED))
async def test_trouble_on_the_way_is_waited_out(world: World, role: str, form: str) -> None:
    """Throttling, server errors, stalls and cut connections are retried; the result is the same."""
    world.file("a.txt", "the sky is blue\n")
    ended = await world.play(REQUEST, script_with(role, RETRIED[form](GOOD[role])), clock=FastClock(200))
    assert (ended.directive, ended.result.output) == ("accept", "the sky is blue")
    (hit,) = [call for call in ended.all(ModelCalled) if call.contract == role]
    assert hit.requests == len(RETRIED[form](GOOD[role])) and not hit.repaired


async def test_a_file_is_not_emptied_by_a_step_that_says_its_text_elsewhere(world: World) -> None:
    """What a tool needs and nobody gave is asked for; what stands beside the main input is the file's text."""
    world.file("a.txt", "the sky is blue\n")
    steps = [{"tool": "write_file", "input": "a.txt"}, {"tool": "write_file", "input": "a.txt", "content": "b\n"}]
    script = script_with(
        "ExecutorStep", [*map(json.dumps, steps), json.dumps({"tool": "answer", "input": "Done."})]
    )
    ended = await world.play(REQUEST, script, refuse=TEXT_DIALECT)
    refused, made = ended.calls
    assert (refused.status, refused.changes, made.status) == (CallStatus.REFUSED, (), CallStatus.OK)
    assert "needs 'content'" in (refused.reason or "") and '"content": "b\\n"' in made.input


async def test_servers_without_schemas_are_enough(world: World) -> None:
    """Without JSON schema, and without JSON mode too, the same task gives the same result."""
    world.file("a.txt", "the sky is blue\n")
    for refused in (["json_schema"], ["json_schema", "json_object"]):
        ended = await world.play(REQUEST, script_with("Plan", [PLAN]), refuse=refused)
        assert ended.directive == "accept"


@pytest.mark.parametrize(
    "bad", [empty(), cut(STEP), wrong_types(STEP), with_body({"tool": "warp"}, "x")], ids=range(4)
)
async def test_an_executor_without_a_usable_step_is_corrected(world: World, bad: Reply) -> None:
    """Two unusable answers end an attempt, not the task: the correction's attempt can still succeed."""
    world.file("a.txt", "the sky is blue\n")
    ended = await world.play(REQUEST, script_with("ExecutorStep", [bad, bad, STEP]), refuse=TEXT_DIALECT)
    assert ended.directive == "accept"
    assert ended.contracts.count("ExecutorStep") == 2


async def test_a_planner_that_cannot_plan_is_an_honest_failure(world: World) -> None:
    """Nothing but nonsense for a plan: every round counts as refused, and the task ends unmet."""
    config = world.config(control={"max_replans": 1, "w1": 0.1})
    ended = await world.play(REQUEST, {"Plan": ["no"] * 8, "FailureReport": ["no"] * 2}, config=config)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "replans")
    assert len(ended.all(PlanRefused)) == 2
    assert ended.result.output == "" and ended.calls == []


@pytest.mark.parametrize(("role", "form"), each_once(ENDLESS))
async def test_trouble_without_end_is_no_model(world: World, role: str, form: str) -> None:
    """A server that never recovers ends the task with `no_model`; what was reached is delivered."""
    world.file("a.txt", "the sky is blue\n")

    def everything(asked: Asked) -> Scripted:
        return ENDLESS[form] if asked.contract == role else GOOD[asked.contract]

    ended = await world.play(REQUEST, everything, clock=FastClock(200))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", "no_model")
