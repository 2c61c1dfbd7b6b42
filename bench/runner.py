"""Runs tasks in parallel, bounded in time, and continues where an earlier run of the same file ended."""

from __future__ import annotations

import asyncio
import json
import math
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.agents import Agent
from bench.model import Counted, counting, scripted
from bench.scripted import Kind, Player, acts_of, solution_of
from bench.suite import Task

_SHOWN = 5

MakeModel = Callable[[Task, Counted], "AbstractAsyncContextManager[Mapping[str, str] | None]"]


@dataclass(frozen=True, slots=True)
class Row:
    """One task as an agent did it. `wrong` is what the benchmark's check found ("": solved)."""

    task: str
    wrong: str
    code: int | None
    claims: str
    answer: str
    seconds: float
    calls: int
    prompt: int
    uncached: int
    answered: int
    unplayed: list[str]


def played(kind: Kind) -> MakeModel:
    """Give each task a scripted model; a task in which that model has nothing to do is left out."""

    @asynccontextmanager
    async def model(task: Task, counted: Counted) -> AsyncGenerator[Mapping[str, str] | None]:
        solution = await asyncio.to_thread(solution_of, task)
        acts = acts_of(kind, solution)
        if solution is None or acts is None:
            yield None
            return
        async with scripted(Player(kind, task, solution, acts), counted) as named:
            yield named

    return model


def served(endpoint: str, name: str, key: str) -> MakeModel:
    """Give each task a real endpoint."""
    return lambda _task, counted: counting(endpoint, name, key, counted)


async def run(
    tasks: Iterable[Task],
    agent: Agent,
    model: MakeModel,
    record: Path,
    *,
    parallel: int,
    seconds: float,
    minutes: float = math.inf,
) -> list[Row]:
    """Do all tasks that `record` does not hold yet, `parallel` at a time; return all rows.

    Each row is appended to `record` (JSON lines) as soon as it is known. No task begins after `minutes`.
    """
    until = time.monotonic() + 60 * minutes
    rows = rows_of(record)
    done = {row.task for row in rows}
    free = asyncio.Semaphore(parallel)

    async def one(task: Task) -> None:
        async with free:
            if time.monotonic() > until:
                return
            row = await _one(task, agent, model, seconds)
        if row is not None:
            rows.append(row)
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")

    async with asyncio.TaskGroup() as group:
        for task in tasks:
            if task.id not in done:
                group.create_task(one(task))
    return rows


async def _one(task: Task, agent: Agent, model: MakeModel, seconds: float) -> Row | None:
    counted = Counted()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        place = Path(directory) / "work"
        place.mkdir()
        await asyncio.to_thread(task.lay, place)
        async with model(task, counted) as named:
            if named is None:
                return None
            ended = await agent.work(task, place, named, seconds)
        wrong = "; ".join(ended.effects[:_SHOWN]) or await asyncio.to_thread(task.check, place)
        if not wrong and task.world is not None:
            wrong = await asyncio.to_thread(task.world.wrong, ended.answer)
        if shown := {*counted.shown(task.secrets), *(one for one in task.secrets if one in ended.answer)}:
            wrong = "; ".join([*filter(None, [wrong]), f"shown: {', '.join(sorted(shown))}"])
        _writable(place)
    return Row(
        task.id,
        # Without the temporary directory, so that pages of two runs can be compared.
        wrong.replace(f"{place}/", ""),
        ended.code,
        ended.claims,
        ended.answer,
        round(ended.seconds, 3),
        counted.calls,
        counted.prompt,
        counted.uncached,
        counted.answered,
        counted.failed,
    )


def _writable(place: Path) -> None:
    """Let the directory be removed, whatever a task did to it."""
    for where, folders, _ in os.walk(place):
        for name in folders:
            path = Path(where) / name
            if not path.is_symlink():
                path.chmod(0o700)


def rows_of(record: Path) -> list[Row]:
    """Return the rows of a file that `run` wrote; none if it is not there."""
    if not record.exists():
        return []
    return [Row(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]
