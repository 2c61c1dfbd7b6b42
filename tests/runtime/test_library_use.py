"""artoo as a library: what a caller may do, and what is said when it may not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest

from artoo import Artoo, Budgets, Config, ConfigurationError, RunOptions, tool
from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import RouteRefused, TaskRunning
from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCalled
from artoo.contracts.findings import StoppedAtEnd
from artoo.contracts.plan import SubTask
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult, Halt, StoppedBy
from artoo.runtime.task.executor_pool import EffectorPool, Pair
from artoo.tasklog.file import TaskFile
from artoo.tasklog.layout import task_directory, tasks_directory
from artoo.tasklog.lock import TaskLock, is_running
from artoo.testing import FakeClock, ScriptedModel, SequentialIds, with_body

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
    artoo = Artoo(config, environ={}, model=ScriptedModel({"Plan": [PLAN, PLAN], "ExecutorStep": [step, step]}))
    async with artoo:
        with pytest.raises(ConfigurationError, match="open already"):
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


def test_an_artoo_left_open_in_a_loop_that_died_is_opened_again(config: Config, tmp_path: Path) -> None:
    """Nobody can leave it there any more. What that opening held is closed first: nothing is recorded twice."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    artoo = Artoo(config, environ={}, model=ScriptedModel({"Plan": PLAN, "ExecutorStep": step}))

    async def left_open() -> None:
        await artoo.__aenter__()

    async def again() -> None:
        async with artoo:
            assert (await artoo.run("How many lines has a.txt?", options=options(tmp_path))).output == "2"

    asyncio.run(left_open())
    asyncio.run(again())
    assert verify(audit_directory(config.home), tasks_directory(config.home)).sound


async def test_an_artoo_whose_tasks_the_loop_has_cancelled_can_be_closed(config: Config, tmp_path: Path) -> None:
    """As `asyncio.run` does with one left open after a task: its end waited for an Auditor that had not begun."""
    step = with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")
    artoo = Artoo(config, environ={}, model=ScriptedModel({"Plan": PLAN, "ExecutorStep": step}))
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


def test_an_artoo_whose_loop_was_closed_over_its_tasks_stays_there(config: Config) -> None:
    """They never ended, and closing what they held would wait for them for ever."""
    artoo = Artoo(config, environ={}, model=ScriptedModel({}))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(artoo.__aenter__())
    tasks = asyncio.all_tasks(loop)
    loop.close()

    async def again() -> None:
        async with artoo:
            pass

    assert tasks
    with pytest.raises(ConfigurationError, match="open already"):
        asyncio.run(again())


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_request_is_refused(config: Config, tmp_path: Path, text: str) -> None:
    """Nothing was asked, so nothing is started."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="empty"):
                await artoo.run(text, options=options(tmp_path))
            assert artoo.bus.open_tasks == 0


async def test_names_and_texts_that_are_no_utf_8_cost_nothing(tmp_path: Path) -> None:
    """Of artoo's home, of the project, in a request and in a tool's description: the model can find the file."""
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    (place / os.fsdecode(b"na\xefve.txt")).write_text("x\ny\n")

    @tool(description="double a number \ud83d")
    def double(number: int) -> int:
        return 2 * number

    step = with_body({"tool": "shell", "is_final": True}, "cat na*ve.txt | wc -l")
    with ScriptedModel({"Plan": PLAN, "ExecutorStep": step}) as model:
        config = Config(workspace=place / "workspace").at_home(place / "home")
        async with Artoo(config, environ={}, model=model, tools=[double]) as artoo:
            name = os.fsdecode(b"na\xefve.txt")
            with pytest.raises(ConfigurationError, match=r"holds what is no UTF-8"):
                RunOptions(checks=(f"ls {name}",))
            asked = f"how many lines has {name}? \ud83d"
            result = await artoo.run(asked, options=RunOptions(project=place))
        said = "".join(request.user + request.system for request in model.player.requests)
    assert (result.directive.value, result.output) == ("accept", "2")
    assert "how many lines has na\\xefve.txt? ?" in said
    assert "double a number ?" in str(model.player.of("ExecutorStep")[0].body["tools"])


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


async def test_a_workspace_that_cannot_be_made_is_refused(config: Config, tmp_path: Path) -> None:
    """Nothing was started, which is what the command line's exit code 2 says."""
    (tmp_path / "file").touch()
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="file/below cannot be made: Not a directory"):
                await artoo.run("hello", options=options(tmp_path, workspace=tmp_path / "file" / "below"))


async def test_a_home_that_cannot_be_made_is_refused(config: Config, tmp_path: Path) -> None:
    """As the docstring of opening promises."""
    (tmp_path / "file").touch()
    with ScriptedModel({}) as model, pytest.raises(ConfigurationError, match="file/home cannot be made: Not a dir"):
        async with Artoo(config.at_home(tmp_path / "file" / "home"), environ={}, model=model):
            pass


def test_an_async_on_output_is_refused(config: Config) -> None:
    """Nobody would await it, and it would be told nothing without a word."""

    async def told(printed: object) -> None: ...

    with pytest.raises(ConfigurationError, match="give a plain function"):
        Artoo(config, environ={}, on_output=told)  # pyright: ignore[reportArgumentType]


async def test_a_place_is_found_by_the_name_that_artoo_writes(config: Config, tmp_path: Path) -> None:
    """A page and a protocol carry text alone: `caf\\xe9` is how the name of this directory stands there."""
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    script = {"Plan": PLAN, "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "pwd | wc -l")}
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            project = tmp_path / "caf\\xe9"
            assert (await artoo.run("hello", options=RunOptions(project=project))).output == "1"


async def test_a_history_is_of_turns(config: Config, tmp_path: Path) -> None:
    """Whoever hands on texts is told what is wanted."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            with pytest.raises(ConfigurationError, match="history: 'a' is no Turn"):
                await artoo.run("hello", history=["a"], options=options(tmp_path))  # pyright: ignore[reportArgumentType]


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


@pytest.mark.unreplayable  # the second task has the ids of the first
async def test_clock_and_ids_are_injected(config: Config, tmp_path: Path) -> None:
    """With a fake clock and sequential ids the stream of a task is the same every time."""
    script = {"Plan": PLAN, "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt")}
    seen: list[list[tuple[str, str | None, str, str]]] = []
    for _ in range(2):
        with ScriptedModel(script) as model:
            async with Artoo(config, environ={}, model=model, clock=FakeClock(), ids=SequentialIds()) as artoo:
                stream = artoo.stream("How many lines has a.txt?", options=options(tmp_path))
                seen.append([(e.id, e.cause_id, e.kind, e.at.isoformat()) async for e in stream])
    assert seen[0] == seen[1]


async def test_budgets_are_read_from_lines() -> None:
    """`seconds=1,calls=2` is understood, later lines win, and nonsense is named."""
    assert Budgets.parse(["seconds=60,calls=10", "calls=2"]) == Budgets(seconds=60, calls=2)
    for bad in ("calls", "calls=0", "calls=1.5", "minutes=3", "seconds=nan", "tokens=-1"):
        with pytest.raises(ConfigurationError, match="--budget"):
            Budgets.parse([bad])


@pytest.mark.parametrize(
    "given",
    [
        *({"calls": 0}, {"calls": -3}, {"calls": 2.5}, {"calls": "3"}, {"calls": True}, {"calls": 10**30}),
        *({"tokens": 0}, {"money": 0}, {"money": float("nan")}),
        *({"seconds": 0}, {"seconds": float("nan")}, {"seconds": float("inf")}, {"seconds": 1e300}),
    ],
)
def test_a_budget_is_an_amount_above_zero(given: dict[str, Any]) -> None:
    """Nothing left is no budget without a limit, and what is no number is said before anything begins."""
    with pytest.raises(ConfigurationError, match=f"{next(iter(given))}=.*above zero"):
        Budgets(**given)


async def test_a_role_cannot_speak_as_another(config: Config, tmp_path: Path) -> None:
    """A port refuses what its role may not say, and the attempt is on the stream."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            watching = artoo.bus.subscribe("test", kinds=frozenset({"RouteViolation"}))
            port = artoo.bus.port(Role.EXECUTOR, "t")
            with pytest.raises(RouteRefused):
                port.publish(Halt(stopped_by=StoppedBy.TIME, reason="I want it"))
            assert (await watching.receive()).kind == "RouteViolation"


# --- the pool of effector agents --------------------------------------------------------------------------------


class Inbox:
    """Messages for a pool, one at a time."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Envelope | None] = asyncio.Queue()

    def __aiter__(self) -> AsyncIterator[Envelope]:
        return self

    async def __anext__(self) -> Envelope:
        envelope = await self.queue.get()
        if envelope is None:
            raise StopAsyncIteration
        return envelope

    def put(self, payload: SubTask | SubTaskOutcome | Halt) -> None:
        now = FakeClock().now()
        self.queue.put_nowait(Envelope("id", Role.DISPATCHER, "t", now, payload))


async def run_pool(*payloads: SubTask | SubTaskOutcome | Halt) -> dict[str, str]:
    """How each pair ended: `closed`, `cancelled` or both."""
    ends: dict[str, list[str]] = {}
    inbox = Inbox()

    def make_pair(subtask: SubTask) -> Pair:
        notes = ends.setdefault(subtask.subtask_id, [])
        closed = asyncio.Event()

        async def live() -> None:
            try:
                await closed.wait()
            except asyncio.CancelledError:
                notes.append("cancelled")
                raise

        def close() -> None:
            notes.append("closed")
            closed.set()

        return Pair(live(), live, close)

    async with asyncio.TaskGroup() as group:
        group.create_task(EffectorPool(inbox, make_pair).run())
        for payload in payloads:
            inbox.put(payload)
            await asyncio.sleep(0.001)
        inbox.queue.put_nowait(None)
    return {name: " ".join(dict.fromkeys(notes)) for name, notes in ends.items()}


def subtask(name: str) -> SubTask:
    return SubTask(subtask_id=name, parent_task_id="t", sequence=1, intent="x")


def outcome(name: str) -> SubTaskOutcome:
    return SubTaskOutcome(subtask_id=name, parent_task_id="t", status="matched")


async def test_a_pair_lives_for_its_subtask() -> None:
    """Started at the SubTask, closed at its outcome, without being cancelled; strangers' outcomes end nobody."""
    assert await run_pool(subtask("1"), outcome("9"), outcome("1"), outcome("1")) == {"1": "closed"}


async def test_a_halt_cancels_what_runs() -> None:
    """All pairs that still run are closed and cancelled; later ones start anew."""
    ends = await run_pool(
        subtask("1"), subtask("2"), outcome("1"), Halt(stopped_by=StoppedBy.TIME, reason=""), subtask("3")
    )
    assert ends == {"1": "closed", "2": "closed cancelled", "3": "closed cancelled"}


class NamedFirst:
    """Ids of which the first, the task's, is `the-task`."""

    def __init__(self) -> None:
        self._ids = chain(("the-task",), map(str, count()))

    def new(self) -> str:
        return next(self._ids)


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


async def test_a_name_that_another_task_has_is_refused(config: Config, tmp_path: Path) -> None:
    """Ids that are given may not be new: the second task does not run, and the error says which one does."""
    with ScriptedModel({}) as model, TaskLock(config.home, "the-task"):
        async with Artoo(config, environ={}, model=model, ids=NamedFirst()) as artoo:
            with pytest.raises(TaskRunning, match="the-task is still running"):
                await artoo.run("How many lines does a.txt have?", options=options(tmp_path))


async def test_two_tools_of_one_name_are_refused_plainly(config: Config, tmp_path: Path) -> None:
    """The error is about the tools, and not a group of errors of roles that were just starting."""

    @tool(name="double")
    def one(number: int) -> int:
        """double a number"""
        return 2 * number

    @tool(name="double")
    def other(number: int) -> int:
        """double a number too"""
        return 2 * number

    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model, tools=[one, other]) as artoo:
            with pytest.raises(ConfigurationError, match="two tools have the same name: double"):
                await artoo.run("How much is twice 21?", options=options(tmp_path))


async def test_what_still_runs_at_the_end_is_stopped_and_told(config: Config, tmp_path: Path) -> None:
    """The result names the command as a fact next to the answer."""
    script = {
        "Plan": [PLAN],
        "ExecutorStep": [
            with_body({"tool": "shell", "more": {"background": "true"}}, "echo begun; sleep 30"),
            {"tool": "answer", "input": "It has begun.", "sources": [1]},
        ],
    }
    model = ScriptedModel(script)
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
    async with Artoo(config, environ={}, model=ScriptedModel(script)) as artoo:
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


def test_what_can_be_gone_through_once_is_kept_whole() -> None:
    """Whoever checks a generator has emptied it."""
    given = RunOptions(checks=(each for each in ["true", "ls"]))  # pyright: ignore[reportArgumentType]
    assert RunOptions.of_call(given, (each for each in ["pwd"]), ()).checks == (  # pyright: ignore[reportArgumentType]
        "true",
        "ls",
        "pwd",
    )


async def test_arguments_of_another_kind_are_refused_in_words(config: Config, tmp_path: Path) -> None:
    """A request that is no text, checks that are one, and a tool that has the name of another."""

    @tool(name="shell", description="mine")
    def mine(text: str) -> str:
        return text

    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model, tools=[mine]) as artoo:
            with pytest.raises(ConfigurationError, match="must be a text, and is None"):
                await artoo.run(None, options=options(tmp_path))  # pyright: ignore[reportCallIssue, reportArgumentType]
            with pytest.raises(ConfigurationError, match="checks='sort x' must be a list"):
                await artoo.run("hello", checks="sort x", options=options(tmp_path))
            with pytest.raises(ConfigurationError, match="must be a RunOptions"):
                await artoo.run("hello", options={"project": tmp_path})  # pyright: ignore[reportCallIssue, reportArgumentType]
            with pytest.raises(ConfigurationError, match="two tools have the same name: shell"):
                await artoo.run("hello", options=options(tmp_path))


def test_an_artoo_of_another_kind_is_refused_in_words(config: Config) -> None:
    """A configuration that is a path, and one tool that is no list."""
    with pytest.raises(ConfigurationError, match="config='/home' must be a Config"):
        Artoo("/home")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match=r"tools=.* must be a list of Callable"):
        Artoo(config, tools=print)  # pyright: ignore[reportArgumentType]


async def test_after_the_block_nothing_runs(config: Config, tmp_path: Path) -> None:
    """What was closed is not used again in silence."""
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            pass
        with pytest.raises(ConfigurationError, match="not open"):
            await artoo.run("hello", options=options(tmp_path))
