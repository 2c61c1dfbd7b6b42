"""After a task nothing of it is left: no coroutine, no inbox, no file, no descriptor."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from scenario import World, gives_up, matches, moves, plan, shell, subtask, write

from artoo import Artoo
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCalled
from artoo.testing import Asked, ScriptedServer, slow
from artoo.testing.replies import Scripted

SLACK = 8
"""Connections and worker threads come and go; what leaks grows by one a task."""

COUNT = "How many lines has a.txt?"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def temporary_files() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("*artoo*"))


def left_over(world: World) -> list[str]:
    """Files of the home that outlive a task and are meant for nobody."""
    names = [str(path.relative_to(world.home)) for path in world.home.rglob("*") if path.is_file()]
    return [
        name
        for name in names
        if not name.startswith(("cache/", "undo/", "tasks/", "memory/", "audit/", "sandbox-backend"))
    ]


def simple(asked: Asked) -> Scripted:
    return plan(subtask("count them all", tool="shell")) if asked.contract == "Plan" else shell("wc -l < a.txt")


async def settled(condition: Callable[[], bool]) -> None:
    """Waits for a state, which is reached within a few turns of the loop."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the state was not reached")


async def interrupting(artoo: Artoo, envelope: Envelope) -> None:
    if isinstance(envelope.payload, ToolCalled):
        artoo.interrupt()


async def watching(artoo: Artoo, envelope: Envelope) -> None:
    """Does nothing."""


ENDS: list[tuple[str, dict[str, list[Scripted]], Callable[[Artoo, Envelope], Awaitable[None]]]] = [
    (
        "accept",
        {"Plan": [plan(subtask("count them all", tool="shell"))], "ExecutorStep": [shell("wc -l < a.txt")]},
        watching,
    ),
    (
        "abandon",
        {
            "Plan": [plan(subtask("find the word", matches("q"), tool="shell"))],
            "ExecutorStep": [gives_up("no")],
            "FailureReport": [moves()],
        },
        watching,
    ),
    (
        "interrupted",
        {
            "Plan": [plan(subtask("count them all", tool="shell"))],
            "ExecutorStep": [write("made.txt", "x\n", final=False), slow(shell("true"), 60)],
        },
        interrupting,
    ),
]


@pytest.mark.parametrize(("_name", "script", "during"), ENDS, ids=[name for name, _, _ in ENDS])
async def test_nothing_is_left_of_a_task(
    world: World,
    _name: str,
    script: dict[str, list[Scripted]],
    during: Callable[[Artoo, Envelope], Awaitable[None]],
) -> None:
    """However it ended: no asyncio task, no open task on the bus, no spool file, no temporary directory."""
    world.file("a.txt", "x\n")
    before, temporary = asyncio.all_tasks(), temporary_files()
    config = world.config(control={"max_retries": 0, "theta": 0.0})

    steps = {contract: list(replies) for contract, replies in script.items()}

    def play(asked: Asked) -> Scripted:
        return steps[asked.contract].pop(0)

    await world.play(COUNT, play, config=config, during=during)
    await settled(lambda: asyncio.all_tasks() <= before)
    kept = [name for name in left_over(world) if not name.startswith("workspaces/")]
    assert kept == []  # what was not finished is in its workspace, and nowhere else
    assert temporary_files() <= temporary


async def test_leaving_a_stream_ends_its_task(world: World) -> None:
    """Who stops listening in the middle stops the task too; nothing of it goes on."""
    world.file("a.txt", "x\n")
    before = asyncio.all_tasks()
    async with ScriptedServer(simple) as server, world.artoo(server.base_url) as artoo:
        stream = artoo.stream(COUNT, options=world.options())
        async for envelope in stream:
            if envelope.kind == "SubTask":
                break
        await stream.aclose()
        assert artoo.bus.open_tasks == 0
        assert len(server.player.of("ExecutorStep")) <= 1
    await settled(lambda: asyncio.all_tasks() <= before)
    assert left_over(world) == []


async def test_cancelling_a_run_ends_its_task(world: World) -> None:
    """A cancelled `run` is cancelled, and leaves nothing on the bus."""
    world.file("a.txt", "x\n")

    def stuck(asked: Asked) -> Scripted:
        return simple(asked) if asked.contract == "Plan" else slow(shell("true"), 60)

    async with ScriptedServer(stuck) as server, world.artoo(server.base_url) as artoo:
        running = asyncio.create_task(artoo.run(COUNT, options=world.options()))
        await settled(lambda: len(server.player.of("ExecutorStep")) == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert artoo.bus.open_tasks == 0


async def run_many(world: World, count: int, *, at_once: int = 8) -> tuple[list[int], list[int]]:
    """Task and descriptor counts after each tenth of `count` tasks in one process."""
    world.file("a.txt", "x\n")
    tasks: list[int] = []
    files: list[int] = []
    async with ScriptedServer(simple) as server, world.artoo(server.base_url) as artoo:
        for _ in range(10):
            for _ in range(max(1, count // 10 // at_once)):
                results = await asyncio.gather(*(artoo.run(COUNT, options=world.options()) for _ in range(at_once)))
                assert {(result.directive.value, result.output) for result in results} == {("accept", "1")}
            gc.collect()
            tasks.append(len(asyncio.all_tasks()))
            files.append(descriptors())
            assert artoo.bus.open_tasks == 0
    return tasks, files


async def test_twenty_tasks_over_http_leave_no_trace(world: World) -> None:
    """Asyncio tasks and descriptors stay flat with connections to a server too (thousands: test_soak)."""
    tasks, files = await run_many(world, 20, at_once=4)
    assert max(tasks[5:]) <= max(tasks[:5]) + SLACK
    assert max(files[5:]) <= max(files[:5]) + SLACK
    assert left_over(world) == []
