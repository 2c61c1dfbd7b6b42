"""artoo as a library: what a caller may do, and what is said when it may not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from artoo import Artoo, Config, ConfigurationError, Deps, RunOptions, Turn, tool
from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, ToolCalled
from artoo.contracts.findings import StoppedAtEnd
from artoo.contracts.solution import FinalResult
from artoo.runtime.app.run_options import options_of_call
from artoo.tasklog.file import TaskFile
from artoo.tasklog.layout import task_directory, tasks_directory
from artoo.tasklog.lock import is_running
from artoo.testing import Asked, ScriptedModel, with_body
from artoo.testing.replies import Scripted

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}

PLAN = {"subtasks": [{"intent": "count them", "tool": "shell", "success_criteria": [ANSWERED]}]}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("x\ny\n")
    return Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")


def options(tmp_path: Path, **more: object) -> RunOptions:
    return RunOptions(project=tmp_path / "project", **more)  # pyright: ignore[reportArgumentType]


async def test_a_run_needs_an_open_artoo(config: Config) -> None:
    """Outside `async with` the error says how it is opened."""
    with pytest.raises(ConfigurationError, match="async with"):
        await Artoo(config, environ={}).run("hello")


async def test_an_open_artoo_is_not_opened_again(config: Config, tmp_path: Path) -> None:
    """A second `async with` would audit everything twice and close the first; after the end it may be opened."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    artoo = Artoo(
        config, environ={}, model=ScriptedModel({"Plan": [PLAN, PLAN], "ExecutorStep": [step, step]}, leftover=True)
    )
    async with artoo:
        with pytest.raises(ConfigurationError, match="already open"):
            async with artoo:
                pass
        assert (await artoo.run("How many lines has a.txt?", options=options(tmp_path))).output == "2"
    async with artoo:
        assert (await artoo.run("How many lines has a.txt?", options=options(tmp_path))).output == "2"
    assert verify(audit_directory(config.home), tasks_directory(config.home)).sound


async def test_an_artoo_belongs_to_the_loop_that_opened_it(config: Config, tmp_path: Path) -> None:
    """Its connections and locks do: elsewhere it says so, and goes on in its own."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    with ScriptedModel({"Plan": PLAN, "ExecutorStep": step}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            elsewhere = asyncio.to_thread(lambda: asyncio.run(artoo.run("How many?", options=options(tmp_path))))
            with pytest.raises(ConfigurationError, match="another event loop"):
                await elsewhere
            assert (await artoo.run("How many lines has a.txt?", options=options(tmp_path))).output == "2"


async def test_an_artoo_whose_tasks_the_loop_has_cancelled_can_be_closed(config: Config, tmp_path: Path) -> None:
    """As `asyncio.run` does with one left open after a task: its end waited for an Auditor that had not begun."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    artoo = Artoo(config, environ={}, model=ScriptedModel({"Plan": PLAN, "ExecutorStep": step}, leftover=True))
    before = asyncio.all_tasks()
    await artoo.__aenter__()
    await artoo.run("How many lines has a.txt?", options=options(tmp_path))
    ending = asyncio.all_tasks() - before
    for task in ending:
        task.cancel()
    await asyncio.wait(ending)
    async with asyncio.timeout(20):
        await artoo.__aexit__(None, None, None)
    assert verify(audit_directory(config.home), tasks_directory(config.home)).sound


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_request_is_refused(config: Config, tmp_path: Path, text: str) -> None:
    """Nothing was asked, so nothing is started."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="empty"):
                await artoo.run(text, options=options(tmp_path))
            assert artoo.bus.open_tasks == 0


async def test_what_cannot_begin_leaves_nothing_open(config: Config, tmp_path: Path) -> None:
    """A mistake in mcp.json is found when a port is open."""
    async with Artoo(config, environ={}, model=ScriptedModel({})) as artoo:
        (config.home / "mcp.json").write_text("[")
        with pytest.raises(ConfigurationError, match=r"mcp\.json"):
            await artoo.run("hello", options=options(tmp_path))
        assert artoo.bus.open_tasks == 0


async def test_a_missing_project_is_refused(config: Config, tmp_path: Path) -> None:
    """A project directory that does not exist is named."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="nowhere does not exist"):
                await artoo.run("hello", options=RunOptions(project=tmp_path / "nowhere"))


@pytest.mark.parametrize("named", ["~nobody-has-this-name/x", "a\0b"])
async def test_what_can_be_no_place_is_refused(config: Config, tmp_path: Path, named: str) -> None:
    """Of a project and of a workspace, with its name: a person who is not there, a character zero."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            for option in ("project", "workspace"):
                with pytest.raises(ConfigurationError, match="is no place for a task"):
                    given: dict[str, Path] = {"project": tmp_path, option: Path(named)}
                    await artoo.run("hello", options=RunOptions(**given))  # pyright: ignore[reportArgumentType]


async def test_a_users_function_is_a_tool(config: Config, tmp_path: Path) -> None:
    """A function given to Artoo is offered by its docstring and called with typed arguments."""

    @tool
    def double(number: int) -> int:
        """double a number"""
        return 2 * number

    script = {
        "Plan": {"subtasks": [{"intent": "double it", "tool": "double", "success_criteria": [ANSWERED]}]},
        "ExecutorStep": {"tool": "double", "input": "21", "is_final": True},
    }
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model, tools=[double]) as artoo:
            result = await artoo.run("How much is twice 21?", options=options(tmp_path))
        assert "- double: double a number" in model.player.requests[0].user
    assert (result.directive.value, result.output) == ("accept", "42")


async def test_a_function_that_raises_is_evidence(config: Config, tmp_path: Path) -> None:
    """What a user's tool raises is a failed call, not a failed task."""

    @tool
    def broken(number: int) -> int:
        """double a number"""
        raise RuntimeError(f"no {number}")

    script = {
        "Plan": {"subtasks": [{"intent": "double it", "tool": "broken", "success_criteria": [ANSWERED]}]},
        "ExecutorStep": [
            {"tool": "broken", "input": "21", "is_final": True},
            with_body({"tool": "python", "is_final": True}, "print(2 * 21)", "python"),
        ],
    }
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model, tools=[broken]) as artoo:
            result = await artoo.run("How much is twice 21?", options=options(tmp_path))
    assert (result.directive.value, result.output) == ("accept", "42")


async def test_a_stream_is_the_whole_task(config: Config, tmp_path: Path) -> None:
    """From the request to the FinalResult, which is the last, and two streams do not mix."""
    script = {
        "Plan": [PLAN, PLAN],
        "ExecutorStep": [with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")] * 2,
    }

    async def collect(stream: AsyncIterator[Envelope]) -> list[Envelope]:
        return [envelope async for envelope in stream]

    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            streams = [artoo.stream("How many lines has a.txt?", options=options(tmp_path)) for _ in range(2)]
            one, other = await asyncio.gather(*map(collect, streams))
    for envelopes in (one, other):
        assert envelopes[0].kind == "TaskOpened" and isinstance(envelopes[-1].payload, FinalResult)
        assert len({envelope.task_id for envelope in envelopes}) == 1
    assert one[0].task_id != other[0].task_id


# --- the pool of effector agents --------------------------------------------------------------------------------


async def test_a_task_is_its_process_own_before_its_log_begins(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds a log that could be resumed finds its lock taken too, from the first line on."""
    locked: list[bool] = []
    real = TaskFile.append

    def append(self: TaskFile, envelopes: list[Envelope]) -> None:
        locked.append(is_running(task_directory(config.home, envelopes[0].task_id)))
        real(self, envelopes)

    monkeypatch.setattr(TaskFile, "append", append)
    script = {"Plan": PLAN, "ExecutorStep": {"tool": "shell", "input": "wc -l a.txt", "is_final": True}}
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            await artoo.run("How many lines does a.txt have?", options=options(tmp_path))
    assert locked[0]


async def test_what_still_runs_at_the_end_is_stopped_and_told(config: Config, tmp_path: Path) -> None:
    """The result names the command as a fact next to the answer."""
    script = {
        "Plan": [PLAN],
        "ExecutorStep": [
            with_body({"tool": "shell", "more": {"background": "true"}}, "echo begun; sleep 30"),
            {"tool": "answer", "input": "It has begun.", "sources": [1]},
        ],
    }
    model = ScriptedModel(script, leftover=True)
    async with Artoo(config, environ={}, model=model) as artoo:
        told = [each async for each in artoo.stream("Begin.", options=options(tmp_path))]
    result = told[-1].payload
    assert isinstance(result, FinalResult)
    assert StoppedAtEnd(commands=("echo begun; sleep 30",)) in result.facts
    (call,) = [each.payload.call for each in told if isinstance(each.payload, ToolCalled)]
    assert (call.status, call.process) == (CallStatus.OK, "p1")


async def test_a_server_that_a_shell_left_behind_is_named(config: Config, tmp_path: Path) -> None:
    """Its command has ended with 0; at the task's end it still runs, and the result says that it was stopped."""
    script = {
        "Plan": [PLAN],
        "ExecutorStep": [
            with_body({"tool": "shell"}, "nohup sleep 300 >/dev/null 2>&1 &\necho started"),
            {"tool": "answer", "input": "It has started.", "sources": [1]},
        ],
    }
    async with Artoo(config, environ={}, model=ScriptedModel(script, leftover=True)) as artoo:
        result = await artoo.run("Start it.", options=options(tmp_path))
    assert StoppedAtEnd(commands=("sleep 300",)) in result.facts


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"checks": "sort x"}, r"checks='sort x' must be a list of str: checks=\['sort x'\]"),
        ({"allow": "network x.org"}, "allow='network x.org' must be a list of str"),
        ({"allow": (5,)}, "allow: 5 is no str"),
        ({"images": "shot.png"}, "images='shot.png' must be a list of Path or bytes"),
        ({"budgets": "x"}, "budgets='x' must be a Budgets"),
        ({"project": "/tmp"}, r"project='/tmp' must be a Path, as in project=Path\('/tmp'\)"),
        ({"workspace": "out"}, "workspace='out' must be a Path"),
        ({"memory": "off"}, "memory='off' must be a bool"),
        ({"strict": 0}, "strict=0 must be a bool"),
        ({"returns": "Person"}, "returns='Person' must be a Mapping"),
        ({"returns": {"type": object}}, "is no JSON schema"),
    ],
)
def test_options_of_another_kind_are_refused_in_words(more: dict[str, object], says: str) -> None:
    """A text is no list of its letters; callers without a type checker learn it before anything begins."""
    with pytest.raises(ConfigurationError, match=says):
        RunOptions(**more)  # pyright: ignore[reportArgumentType]


class Stock:
    """A dependency of a tool."""

    def __init__(self, count: int) -> None:
        self.count = count


@tool
def in_stock(stock: Deps[Stock], item: str) -> int:
    """How many pieces of an item there are."""
    return stock.count + len(item)


def test_an_unknown_option_of_a_call_is_named() -> None:
    """A misspelled keyword is refused, and those that there are are listed."""
    with pytest.raises(TypeError, match="check is no option of a call; known: checks, images, history, options"):
        options_of_call({"check": ("ls",)})  # pyright: ignore[reportArgumentType]


async def test_a_dependency_is_given_by_the_program(config: Config, tmp_path: Path) -> None:
    """The model sees the other parameters alone; without a dependency of the type no Artoo is made."""
    with pytest.raises(ConfigurationError, match=r"in_stock: stock needs a Stock; give one with Artoo\(deps"):
        Artoo(config, tools=[in_stock], deps=["no stock"])
    plan = {"subtasks": [{"intent": "count", "tool": "in_stock", "success_criteria": [ANSWERED]}]}
    script = {"Plan": plan, "ExecutorStep": {"tool": "in_stock", "input": "lamp", "is_final": True}}
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, tools=[in_stock], deps=[Stock(38)], model=model) as artoo:
            result = await artoo.run("How many lamps?", options=options(tmp_path))
    assert result.output == "42"


async def test_an_exchange_goes_into_the_history_of_the_next_request(config: Config, tmp_path: Path) -> None:
    """Also when it was kept as JSON in between."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    asked: list[str] = []

    def understood(question: Asked) -> Scripted:
        asked.append(question.user)
        return {"task_id": "count", "intent": "How many lines has a.txt?"}

    script = {"Plan": [PLAN, PLAN], "ExecutorStep": [step, step], "TaskSpec": understood}
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            first = await artoo.run("How many lines has a.txt?", options=options(tmp_path))
            kept = first.turn("How many lines has a.txt?").model_dump_json()
            again = [Turn.model_validate_json(kept)]
            await artoo.run("Count them again.", history=again, options=options(tmp_path))
    assert len(asked) == 1 and "How many lines has a.txt?" in asked[0]
