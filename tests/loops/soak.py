"""Many scripted tasks in one process, and what the process holds in between."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from scenario import World, matches, plan, python, shell, subtask, write

from artoo import Artoo, Config
from artoo.contracts.solution import Directive
from artoo.llm.client import EndpointModel
from artoo.llm.transport import Json, OnEvent, TransportReply
from artoo.runtime.app.system import SystemClock
from artoo.testing import Asked, Reply, ScriptPlayer
from artoo.testing.replies import Scripted
from artoo.testing.scripted_model import reply_body

KINDS = ("count", "compute", "write", "fail")
"""Of every four tasks one reads with the shell, one runs Python, one makes a file, one gives up."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds after `tasks` tasks.

    `memory` is its own (anonymous) resident memory in bytes, 0 where the system does not tell: the pages of files,
    such as those of the memory store, which grows as it should, are the system's to keep or drop.
    """

    tasks: int
    seconds: float
    memory: int
    objects: int
    descriptors: int
    coroutines: int
    threads: int
    modules: int

    def line(self) -> str:
        """For a person who watches."""
        return (
            f"{self.tasks:5d} tasks {self.tasks / max(self.seconds, 1e-9):5.1f}/s  {self.memory / 2**20:6.1f} MiB  "
            f"{self.objects} objects  {self.descriptors} files  {self.coroutines} tasks  {self.threads} threads"
        )


def held(tasks: int, seconds: float) -> Held:
    """Looks at this process, garbage collected."""
    gc.collect()
    descriptors = Path("/proc/self/fd")
    return Held(
        tasks,
        seconds,
        _own_memory(),
        len(gc.get_objects()),
        len(list(descriptors.iterdir())) if descriptors.exists() else 0,
        len(asyncio.all_tasks()),
        threading.active_count(),
        len(sys.modules),
    )


def _own_memory() -> int:
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1_024 for line in lines if line.startswith("RssAnon:")), 0)


@dataclass(slots=True)
class ForgetfulTransport:
    """A server that answers by what is asked, and remembers nothing: the other doubles keep every request."""

    name: str = "forgetful"
    calls: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        player = ScriptPlayer(_answer)
        reply, usage = player.reply_to(cast(dict[str, Json], dict(body)))
        next(self.calls)
        await asyncio.sleep(0)
        return TransportReply(200, {}, cast(Json, reply_body(reply, usage)))

    async def models(self, *, timeout: float) -> TransportReply:
        return TransportReply(200, {}, cast(Json, {"object": "list", "data": []}))

    async def close(self) -> None:
        """Nothing to free."""


def _answer(asked: Asked) -> Scripted:
    told = asked.user  # which also tells of earlier requests that are alike
    for heading in ("Request:\n", "Your subtask:\n"):
        told = told.rpartition(heading)[2]
    kind = next(each for each in KINDS if told.startswith(f"soak {each}") or each == "fail")
    name = told.partition("number ")[2].partition(" ")[0]
    if asked.contract == "Plan":
        check = matches("never") if kind == "fail" else matches(r"\d|made")
        return plan(subtask(f"soak {kind} number {name} now", check))
    if asked.contract == "FailureReport":
        return {"next_moves": ["give up"]}
    match kind:
        case "count":
            return shell("wc -l < a.txt")
        case "compute":
            return python(f"print({len(name)} + 1)")
        case "write":
            return write(f"out-{name}.txt", "made\n")
        case _:
            return Reply(text='{"tool": "cannot"}\n```text\nno way\n```')


async def soak(world: World, count: int, *, at_once: int = 4, looks: int = 10) -> list[Held]:
    """Runs `count` tasks, `at_once` at a time, in one Artoo; looks at the process `looks` times on the way."""
    world.file("a.txt", "x\n")
    config = world.config(control={"max_retries": 0, "theta": 0.0})
    model = EndpointModel(ForgetfulTransport(), "forgetful", SystemClock())
    loop = asyncio.get_running_loop()
    seen: list[Held] = []
    async with Artoo(config, environ={}, model=model) as artoo:
        started = loop.time()
        numbers = iter(range(count))
        for look in range(1, looks + 1):
            due = itertools.islice(numbers, count * look // looks - (seen[-1].tasks if seen else 0))
            await _run(artoo, world, list(due), at_once)
            assert artoo.bus.open_tasks == 0
            seen.append(held(count * look // looks, loop.time() - started))
    return seen


async def _run(artoo: Artoo, world: World, numbers: list[int], at_once: int) -> None:
    """These tasks, never more than `at_once` together."""
    places = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with places:
            kind = KINDS[number % len(KINDS)]
            result = await artoo.run(f"soak {kind} number {number} now", options=world.options())
            expected = Directive.ABANDON if kind == "fail" else Directive.ACCEPT
            assert result.directive is expected, f"{kind}: {result}"

    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number))


def left_over(config: Config) -> list[str]:
    """Files of the home that outlive tasks and are meant for nobody."""
    kept = ("cache/", "undo/", "tasks/", "memory/", "sandbox-backend.json", "audit")
    names = (str(path.relative_to(config.home)) for path in config.home.rglob("*") if path.is_file())
    return [name for name in names if not name.startswith(kept)]
