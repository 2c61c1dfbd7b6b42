"""How the library is left: by an error, by a time limit, by a stream that nobody reads to its end."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from artoo import Artoo, Config, ConfigurationError, RunOptions
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.lock import is_running
from artoo.testing import ScriptedModel, with_body
from artoo.testing.script import Entry

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}


def script(command: str) -> dict[str, Entry]:
    return {
        "Plan": {"subtasks": [{"intent": "count", "tool": "shell", "success_criteria": [ANSWERED]}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, command),
    }


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("x\ny\n")
    return Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")


def options(tmp_path: Path) -> RunOptions:
    return RunOptions(project=tmp_path / "project")


@pytest.mark.parametrize("error", [ValueError("mine"), ConfigurationError("mine"), KeyError("mine")])
async def test_an_error_leaves_as_it_is(config: Config, error: Exception) -> None:
    """What the caller's own block raises comes out of `async with Artoo()` itself, in no group."""
    with ScriptedModel({}) as model, pytest.raises(type(error), match="mine") as raised:
        async with Artoo(config, environ={}, model=model):
            raise error
    assert raised.value is error


async def test_a_time_limit_ends_a_run_and_nothing_of_it_goes_on(config: Config, tmp_path: Path) -> None:
    """`asyncio.timeout` within the block is a TimeoutError outside of it; the task can be resumed."""
    model = ScriptedModel(script("sleep 30"), leftover=True)
    with pytest.raises(TimeoutError):
        async with Artoo(config, environ={}, model=model) as artoo, asyncio.timeout(None) as limit:
            over = asyncio.get_running_loop().time()
            artoo.bus.attach(lambda said: limit.reschedule(over) if said.kind == "SubTask" else None)
            await artoo.run("How many lines has a.txt?", options=options(tmp_path))
    [directory] = tasks_directory(config.home).iterdir()
    assert not is_running(directory)


async def test_cancelled_runs_leave_no_file_open(config: Config, tmp_path: Path) -> None:
    """However many time limits end a task of a service that lives for long, its logs are closed."""

    def open_logs() -> int:
        leads_to = (os.path.realpath(each) for each in Path("/proc/self/fd").iterdir())
        return sum(each.endswith("log.jsonl") and each.startswith(str(tmp_path)) for each in leads_to)

    async with Artoo(config, environ={}, model=ScriptedModel({}, leftover=True)) as artoo:
        for _ in range(4):
            async for event in artoo.stream("How many lines has a.txt?", options=options(tmp_path)):
                if event.kind == "UserRequest":
                    break
        for _ in range(1_000):
            if open_logs() <= 1:  # the last one may be written still
                break
            await asyncio.sleep(0.01)
        assert open_logs() <= 1


@pytest.mark.parametrize("kind", ["TaskOpened", "UserRequest", "SubTask"])
async def test_a_stream_may_be_left_at_any_message(
    config: Config, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After `break` the task is ended and its lock is free; nothing is logged, nothing is left unretrieved."""
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    model = ScriptedModel(script("sleep 30"), leftover=True)
    with caplog.at_level(logging.WARNING):
        async with Artoo(config, environ={}, model=model) as artoo:
            async for event in artoo.stream("How many lines has a.txt?", options=options(tmp_path)):
                if event.kind == kind:
                    break
        assert artoo.bus.open_tasks == 0
        await asyncio.sleep(0)
    assert unhandled == []
    assert caplog.messages == []
    assert not any(is_running(directory) for directory in tasks_directory(config.home).iterdir())


async def test_what_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    """A setting that cannot work is refused by itself, and no task of artoo goes on."""
    config = Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")
    environ = {"OTEL_TRACES_EXPORTER": "otlp", "BRAIN_BASE_URL": "http://127.0.0.1:1/v1"}
    before = asyncio.all_tasks()
    with ScriptedModel({}), pytest.raises(ConfigurationError):
        async with Artoo(config, environ=environ):
            pass
    assert asyncio.all_tasks() == before
