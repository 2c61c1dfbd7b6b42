"""What a request wants left running: the user is asked once, and it runs on outside the workspace."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest
from click.testing import CliRunner
from scenario import Json, World, plan, says, subtask

from artoo.cli.commands.running_commands import ps, stop
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.findings import LeftRunning, StoppedAtEnd
from artoo.runtime.task.kept_processes import left_processes
from artoo.testing import Reply, with_body

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")

COMMAND = "echo $$ > pid; echo started; exec sleep 300"


def keep(command: str = COMMAND) -> Reply:
    """A step that starts a command which is to run on after the task."""
    header: Json = {"tool": "shell", "more": {"keep": "true"}}
    return with_body(header, command)


def script(*steps: Reply) -> dict[str, object]:
    return {
        "Plan": plan(subtask("leave it running", tool="shell")),
        "ExecutorStep": [*steps, says("It is started.", 1)],
    }


def stop_all(world: World) -> None:
    for one in left_processes(world.home):
        one.stop()


async def until(reached: Callable[[], bool]) -> None:
    """Wait for a state of another process."""
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(reached):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_kept_process_runs_on_after_a_yes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked about after the changes were applied, started as the user, listed, and stopped by a command."""
    asked: list[str] = []

    async def agrees(request: ConfirmationRequest) -> Consent:
        asked.append(request.title)
        return Consent.ONCE

    try:
        ended = await world.play("Leave it running.", script(keep()), confirm=agrees)  # pyright: ignore[reportArgumentType]
        assert asked[-1].startswith("leave it running: echo $$ > pid")
        (fact,) = (each for each in ended.result.facts if isinstance(each, LeftRunning))
        (process,) = left_processes(world.home)
        assert fact.commands == (f"{process.started.id}: {COMMAND}",)
        assert process.runs and process.started.task_id == ended.result.task_id
        assert not any(isinstance(each, StoppedAtEnd) for each in ended.result.facts)
        await until(lambda: bool(process.output.read_bytes()))
        assert (world.project / "pid").read_text().strip().isdigit()
        monkeypatch.setenv("ARTOO_HOME", str(world.home))
        listed = await asyncio.to_thread(CliRunner().invoke, ps, [])
        assert f"{process.started.id}  running" in listed.output and "sleep 300" in listed.output
        stopped = await asyncio.to_thread(CliRunner().invoke, stop, [process.started.id[:4]])
        assert (stopped.exit_code, f"{process.started.id} was stopped" in stopped.output) == (0, True)
        assert not process.runs
        again = await asyncio.to_thread(CliRunner().invoke, stop, [process.started.id, "--forget"])
        assert again.exit_code == 0 and not left_processes(world.home)
    finally:
        stop_all(world)


async def test_after_a_no_it_is_stopped_and_named(world: World) -> None:
    """Nothing is left running unasked."""

    async def refuses_to_keep(request: ConfirmationRequest) -> Consent:
        return Consent.NO if any(act.verb == "keep" for act in request.acts) else Consent.ONCE

    ended = await world.play("Leave it running.", script(keep()), confirm=refuses_to_keep)  # pyright: ignore[reportArgumentType]
    assert StoppedAtEnd(commands=(COMMAND,)) in ended.result.facts
    assert not left_processes(world.home)


async def test_without_anybody_to_ask_nothing_is_left_running(world: World) -> None:
    """The result names what was stopped."""
    ended = await world.play("Leave it running.", script(keep()))  # pyright: ignore[reportArgumentType]
    assert StoppedAtEnd(commands=(COMMAND,)) in ended.result.facts
    assert not left_processes(world.home)
