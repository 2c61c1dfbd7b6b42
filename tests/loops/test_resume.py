"""Tasks that stopped before their end go on where they were, and nothing that the log has is asked for again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from scenario import (
    Answering,
    Each,
    Ended,
    FastClock,
    Json,
    Script,
    World,
    assert_causal,
    matches,
    merged,
    moves,
    plan,
    shell,
    subtask,
)

from artoo import Artoo, Budgets
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, TaskRunning
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCalled
from artoo.contracts.plan import Joined, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import Interrupt
from artoo.contracts.solution import FinalResult, OutcomeSummary, RoleFailure
from artoo.loops.medium.planner import Planner
from artoo.tasklog.layout import part_path, tasks_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.testing import Asked, ScriptedServer, server_error, slow
from artoo.testing.replies import Scripted

COUNT = "How many lines has a.txt?"
ONE = plan(subtask("count", tool="shell"))
LONG = 60.0
TWO_STEPS = {"quick": shell("wc -l < a.txt"), "other": shell("wc -c < a.txt")}


def the_log(world: World) -> Path:
    (log,) = tasks_directory(world.home).iterdir()
    return log


def messages(world: World) -> list[Envelope]:
    return list(TaskLogReader(the_log(world)).envelopes())


def steps(asked: Asked) -> Scripted:
    """By the subtask's intent."""
    return next(step for name, step in TWO_STEPS.items() if name in _intent(asked))


async def go_on(world: World, script: Script | Answering, task_id: str | None = None, **more: object) -> Ended:
    """Resumes the task in a process of its own, as far as a test can have one."""
    async with (
        asyncio.timeout(20),
        ScriptedServer(script) as server,
        world.artoo(server.base_url, **more) as artoo,  # pyright: ignore[reportArgumentType]
    ):
        envelopes = [envelope async for envelope in artoo.stream_resumed(task_id)]
        assert artoo.bus.open_tasks == 0
    without = [each for each in envelopes if not isinstance(each.payload, TaskResumed)]
    assert_causal(without)
    return Ended(envelopes, server.player.requests)


def once(kind: type, act: Callable[[Artoo], None]) -> Callable[[Artoo, Envelope], object]:
    """Acts at the first message of a kind."""
    done: list[bool] = []

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, kind) and not done:
            done.append(True)
            act(artoo)

    return during


async def interrupted(world: World, *, config: object = None) -> Ended:
    """Two parallel subtasks; when one is done, somebody presses Ctrl-C."""
    world.file("a.txt", "x\ny\n")
    stuck = Each.of(quick=TWO_STEPS["quick"], other=slow(shell("true"), LONG))
    script: Script = {
        "Plan": plan(subtask("do the quick one", tool="shell"), subtask("do the other one", tool="shell")),
        "ExecutorStep": stuck,
    }
    return await world.play(
        "Count lines and characters of a.txt.",
        script,
        during=once(SubTaskOutcome, lambda artoo: artoo.interrupt()),  # pyright: ignore[reportArgumentType]
    )


async def test_an_interrupted_task_goes_on(world: World) -> None:
    """What matched before Ctrl-C is not done again; the answer that never came is asked for; the end is whole."""
    first = await interrupted(world)
    assert first.result.stopped_by == "interrupted"
    ended = await go_on(world, {"ExecutorStep": steps, "MergeReport": merged("2 lines, 4 characters")})
    assert [asked.contract for asked in ended.requests] == ["ExecutorStep", "MergeReport"]
    assert ended.directive == "accept" and ended.result.output == "2 lines, 4 characters"
    assert set(ended.result.done) == {"do the quick one", "do the other one"}
    assert ended.result.cost.llm_calls >= 3
    assert len(ended.all(FinalResult)) == 1 and not ended.all(Interrupt)


async def test_a_task_can_be_interrupted_again_and_again(world: World) -> None:
    """A resumed task that is interrupted can be resumed; its log replays, dropped parts and all."""
    await interrupted(world)
    during = once(TaskResumed, lambda artoo: artoo.interrupt())
    async with (
        ScriptedServer({"ExecutorStep": lambda asked: slow(steps(asked), LONG)}) as server,
        world.artoo(server.base_url) as artoo,
    ):
        async for envelope in artoo.stream_resumed():
            await during(artoo, envelope)  # pyright: ignore[reportGeneralTypeIssues]
    ended = await go_on(world, {"ExecutorStep": steps, "MergeReport": merged("2 lines, 4 characters")})
    assert ended.directive == "accept"
    assert sum(isinstance(each.payload, TaskResumed) for each in messages(world)) == 2


async def test_a_task_without_a_model_goes_on_when_there_is_one(world: World) -> None:
    """A task that ended with `no_model` asks again what failed, and nothing that was answered."""
    world.file("a.txt", "x\ny\n")
    script: Script = {"Plan": ONE, "ExecutorStep": [server_error(401)]}
    first = await world.play(COUNT, script)
    assert first.result.stopped_by == "no_model"
    ended = await go_on(world, {"ExecutorStep": shell("wc -l < a.txt")})
    assert ended.directive == "accept" and ended.result.output == "2"
    assert not ended.all(RoleFailure)


async def test_a_finished_task_is_refused(world: World) -> None:
    """A task that came to its end is not run again; the refusal says how it ended."""
    world.file("a.txt", "x\ny\n")
    await world.play(COUNT, {"Plan": ONE, "ExecutorStep": shell("wc -l < a.txt")})
    with pytest.raises(ConfigurationError) as refused:
        await go_on(world, {}, the_log(world).name[:20])
    assert "has ended, it was done, and cannot go on: 2" in repr(refused.value)
    with pytest.raises(ConfigurationError) as refused:
        await go_on(world, {})
    assert "has stopped before its end" in repr(refused.value)


async def test_who_stops_listening_leaves_the_task_as_it_was(world: World) -> None:
    """A resumed stream that is left at its first message has changed nothing, and can be taken up again."""
    await interrupted(world)
    before = messages(world)
    async with ScriptedServer({}) as server, world.artoo(server.base_url) as artoo:
        stream = artoo.stream_resumed()
        await anext(stream)
        await stream.aclose()
        assert artoo.bus.open_tasks == 0
    assert messages(world) == before
    ended = await go_on(world, {"ExecutorStep": steps, "MergeReport": merged("2 lines, 4 characters")})
    assert ended.directive == "accept"


async def test_a_running_task_is_refused(world: World) -> None:
    """While it runs, here or elsewhere, nobody else goes on with it."""
    refusals: list[Exception] = []

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, SubTask):
            with pytest.raises(TaskRunning, match="still running"):
                await artoo.resume(envelope.task_id)
            refusals.append(TaskRunning())

    world.file("a.txt", "x\ny\n")
    script: Script = {"Plan": ONE, "ExecutorStep": shell("wc -l < a.txt")}
    ended = await world.play(COUNT, script, during=during)
    assert ended.directive == "accept" and len(refusals) == 1


async def test_a_project_that_is_gone_is_named(world: World) -> None:
    """A task whose directory is not there any more says which."""
    await interrupted(world)
    moved = world.project.rename(world.project.with_name("elsewhere"))
    with pytest.raises(ConfigurationError) as refused:
        await go_on(world, {})
    assert f"worked in {world.project}, which is not there any more" in repr(refused.value)
    shutil.move(moved, world.project)


async def test_spent_budgets_are_carried_over(world: World) -> None:
    """Calls that were made before count: the budget of a task is not renewed by stopping it."""
    world.file("a.txt", "x\ny\n")
    script: Script = {
        "Plan": plan(subtask("do the quick one", tool="shell"), subtask("do the other one", tool="shell")),
        "ExecutorStep": Each.of(quick=TWO_STEPS["quick"], other=slow(shell("true"), LONG)),
    }
    stop = once(SubTaskOutcome, lambda artoo: artoo.interrupt())
    await world.play("Count a.txt.", script, during=stop, options=world.options(budgets=Budgets(calls=3)))  # pyright: ignore[reportArgumentType]
    ended = await go_on(world, {"ExecutorStep": shell("wc -c < a.txt", final=False)})
    assert ended.result.stopped_by == "calls" and len(ended.requests) == 1
    assert ended.result.cost.llm_calls == 3


async def test_a_resumed_task_goes_on_in_its_workspace(world: World) -> None:
    """What was done before the interruption is still in the workspace, not among the user's files."""
    world.file("a.txt", "x\n")

    def step(asked: Asked) -> Scripted:
        return slow(shell("true"), LONG) if "[1]" in asked.user else shell("echo 7 > a.txt", final=False)

    script: Script = {"Plan": plan(subtask("overwrite it", matches("^7"), tool="shell")), "ExecutorStep": step}
    stop = once(ToolCalled, lambda artoo: artoo.interrupt())
    await world.play("Put 7 into a.txt.", script, during=stop)  # pyright: ignore[reportArgumentType]
    assert (world.project / "a.txt").read_text() == "x\n"
    ended = await go_on(world, {"ExecutorStep": shell("cat a.txt")}, confirm=_agrees)
    assert (ended.directive, ended.result.changes.state) == ("accept", "applied")
    assert (world.project / "a.txt").read_text() == "7\n"


async def test_the_task_is_checked_with_what_an_earlier_process_did(world: World) -> None:
    """What a part did before the interruption is there when a command checks the whole."""
    world.file("a.txt", "x\n")
    both: Json = {
        "text": "both are there",
        "check": {"check": "command_succeeds", "command": "test -s one && test -s two"},
    }
    drafted = plan(
        subtask("write one", tool="shell"), subtask("write two", tool="shell", sequence=2), criteria=[both]
    )

    def first(asked: Asked) -> Scripted:
        return drafted if asked.contract == "Plan" else shell("echo 1 > one") if "one" in _intent(asked) else hang

    hang = slow(shell("true"), LONG)
    begun = once(Joined, lambda artoo: artoo.interrupt())
    await world.play("Write one, then two.", first, during=begun)  # pyright: ignore[reportArgumentType]
    ended = await go_on(world, {"ExecutorStep": shell("echo 2 > two")}, confirm=_agrees)
    assert [(each.verdict, each.evidence) for each in ended.all(OutcomeSummary)[-1].task_verdicts] == [
        ("pass", "`test -s one && test -s two` ended with 0: ")
    ]
    assert ended.directive == "accept" and (world.project / "two").read_text() == "2\n"


def _intent(asked: Asked) -> str:
    return asked.user.rpartition("Your subtask:\n")[2].partition("\n")[0]


async def _agrees(request: ConfirmationRequest) -> Consent:
    return Consent.ONCE


async def test_a_cut_log_goes_on_from_every_message(world: World) -> None:
    """Wherever the log of a task with a correction and a replan ends, the same end follows."""
    world.file("a.txt", "x\ny\n")
    missing = matches(r"\A2\s*\Z")
    answers: dict[str, Scripted] = {}

    def model(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            again = "What must change:" in asked.user  # what memory has learnt of the first run is told as well
            return plan(subtask("count once more" if again else "count", missing, tool="shell"))
        if asked.contract == "FailureReport":
            return moves("say what is wanted")
        if "once more" in asked.user:
            return shell("wc -l < a.txt")
        return answers.setdefault(asked.user, shell(f"echo {len(answers)}9"))

    first = await world.play("Show the number.", model, config=world.config(control={"max_retries": 1}))
    log = part_path(the_log(world), 0)
    lines = log.read_bytes().splitlines(keepends=True)
    for cut in range(3, len(lines), 7):
        log.write_bytes(b"".join(lines[:cut]))
        answered = sum(isinstance(each.payload, ModelCalled) for each in messages(world))
        ended = await go_on(world, model, clock=FastClock())
        assert ended.directives == first.directives, cut
        assert ended.result.output == first.result.output, cut
        cut_off = any(call.status is CallStatus.INTERRUPTED for call in ended.calls)  # the model decides about it
        assert answered + len(ended.requests) <= len(first.requests) + cut_off, cut


async def test_nothing_is_done_when_the_log_leads_elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that would have planned otherwise says so, and starts nothing."""
    await interrupted(world)

    async def other(self: Planner, envelope: Envelope) -> None:
        raise RuntimeError("nothing to plan")

    before = len(messages(world))
    with monkeypatch.context() as patch, pytest.raises(ConfigurationError) as refused:
        patch.setattr(Planner, "_handle", other)
        await go_on(world, {})
    assert "a replay of its log does not reach the state" in repr(refused.value)
    assert "round 1, R2" in repr(refused.value)
    assert len(messages(world)) == before
