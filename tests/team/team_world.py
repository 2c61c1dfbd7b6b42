"""A home with a team, a project, and a model that plays every role by script."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from artoo import Artoo, Config
from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, Complexity, TaskMoved, TrustLevel
from artoo.contracts.envelope import Envelope
from artoo.ports.clock import Clock
from artoo.team.office import Office, open_office
from artoo.team.team import Team, open_team
from artoo.testing import Asked, Reply, ScriptedModel, with_body
from artoo.testing.replies import Scripted

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds after which a state that does not come is a failing test: long for a busy machine, and less than what
pytest gives a whole test, so that the test itself says what happened."""

Answering = Callable[[Asked], Scripted]


def plan(intent: str, *criteria: Mapping[str, object] | str, tool: str = "write_file") -> dict[str, object]:
    """A Plan of one subtask; without criteria of its own there is one that a judge decides."""
    step = {"sequence": 1, "intent": intent, "tool": tool, "success_criteria": list(criteria)}
    return {"subtasks": [step], "task_criteria": [] if criteria else ["It is done."]}


def exists(path: str) -> dict[str, object]:
    """A verifiable criterion: the file is there."""
    return {"text": f"{path} exists", "mode": "verifiable", "check": {"check": "file_exists", "path": path}}


def says(path: str, regex: str) -> dict[str, object]:
    """A verifiable criterion: the file matches. Once the file is there, its existence would show nothing."""
    check = {"check": "file_matches", "path": path, "regex": regex}
    return {"text": f"{path} says {regex}", "mode": "verifiable", "check": check}


def write(path: str, text: str) -> Reply:
    """A step that makes a file."""
    return with_body({"tool": "write_file", "input": path, "is_final": True}, text, "text")


def shell(command: str) -> Reply:
    """A step that runs a command."""
    return with_body({"tool": "shell", "is_final": True}, command)


def writing(path: str, text: str, verdict: str = "approve") -> Answering:
    """A model that writes one file."""

    def script(asked: Asked) -> Scripted:
        match asked.contract:
            case "Plan":
                return plan(f"write {path}", holds(path, text))
            case "ExecutorStep":
                return write(path, text)
            case _:
                return {"verdict": verdict, "reasons": ["because"]}

    return script


def holds(path: str, text: str) -> dict[str, object]:
    """A verifiable criterion: the file has this text. That it is there would say nothing where it was before."""
    check = {"check": "file_matches", "path": path, "regex": re.escape(text.strip())}
    return {"text": f"{path} has the text", "mode": "verifiable", "check": check}


@dataclass(slots=True)
class Crew:
    """A home, its office, and the running team."""

    office: Office
    team: Team
    artoo: Artoo
    project: Path
    envelopes: list[Envelope] = field(default_factory=list[Envelope])
    running: asyncio.Task[None] | None = None

    async def add(self, text: str, assignee: str, complexity: Complexity | None = None) -> BoardTask:
        """A task of the operator's in the project."""
        return await self.office.board.add(
            text, OPERATOR, assignee=assignee, complexity=complexity, project=str(self.project)
        )

    async def until(self, task: BoardTask, *states: BoardState) -> BoardTask:
        """Return the task when it has reached one of these states; fail with what happened when it does not."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (now := await self.office.board.get(task.id)).state not in states:
                    if self.running is not None and self.running.done():
                        await self.running  # a team that has died is no state to wait for
                    await _written(self.office)
                return now
        except TimeoutError:
            now, told = await self.office.board.get(task.id), [one.payload for one in self.envelopes[-12:]]
            raise AssertionError((now, await self.moves(task), self.team.problems, told)) from None

    async def left_to_operator(self, task: BoardTask) -> BoardTask:
        """The task when only the operator may review it."""
        async with asyncio.timeout(PATIENCE):
            while (now := await self.office.board.get(task.id)).reviewer != OPERATOR:
                await _written(self.office)
            return now

    async def moves(self, task: BoardTask) -> list[str]:
        """`before > after by actor` for every transition."""
        log = await self.office.board.log(task.id)
        return [
            f"{one.before.value if one.before else '-'} > {one.after.value} by {one.actor}"
            for one in log
            if isinstance(one, TaskMoved)
        ]


async def settled(team: Crew, look: Callable[[], Awaitable[T]]) -> T:
    """What `look` finds, once it finds something."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await look()):
            await _written(team.office)
        return found


async def _written(office: Office) -> None:
    """Returns after the next write to the books."""
    written = asyncio.Event()
    forget = office.database.on_written(written.set)
    try:
        async with asyncio.timeout(1.0):
            await written.wait()
    except TimeoutError:
        return
    finally:
        forget()


TRUST = {"ada": TrustLevel.PROBATION, "bob": TrustLevel.STANDARD, "cyd": TrustLevel.SENIOR}


@asynccontextmanager
async def crew(
    place: Path,
    script: Answering,
    *,
    trust: Mapping[str, TrustLevel] = TRUST,
    clock: Clock | None = None,
    allow: tuple[str, ...] = (),
    limits: Mapping[str, tuple[str, ...]] | None = None,
    config: Config | None = None,
    worker: bool = False,
) -> AsyncGenerator[Crew]:
    """A team at work, stopped at the end. `config`: of a home of the caller's; `allow` is not looked at then."""
    project = place / "project"
    project.mkdir(exist_ok=True)
    config = config or Config.model_validate(
        {"workspace": place / "out", "allow": list(allow), "memory": {"enabled": False}}
    ).at_home(place / "home")
    home = config.home
    async with open_office(config, clock) as office:
        for name, level in trust.items():
            if not (home / "agents" / name).exists():
                must_not = (limits or {}).get(name, ())
                identity = create_agent(home, name, role="clerk", persona=f"{name} is exact.", must_not=must_not)
                await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=level)
        model = ScriptedModel(script, leftover=True)
        async with (
            Artoo(config, model=model, clock=clock, environ={}) as artoo,
            open_team(office, artoo, small_model=True, grace=5.0, worker=worker) as team,
        ):
            found = Crew(office, team, artoo, project)
            artoo.bus.attach(found.envelopes.append)
            ready = asyncio.Event()
            found.running = running = asyncio.create_task(team.run(ready=ready.set))
            try:
                async with asyncio.timeout(PATIENCE):
                    await ready.wait()
                yield found
            finally:
                team.stop()
                async with asyncio.timeout(PATIENCE):
                    await running
