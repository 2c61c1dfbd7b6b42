"""Real homes, real sandboxes: what the tests of this folder share."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from artoo.contracts.changes import ApplyReport, Change
from artoo.contracts.settling import ChangeClass
from artoo.ports.sandbox import Captured, Limits, Roots, RunStatus, Sandbox, SandboxRequest
from artoo.ports.world import Program, ViewRun
from artoo.world.choose import Candidate, candidates
from artoo.world.classes import classified
from artoo.world.closing import opened
from artoo.world.difference import Difference
from artoo.world.opening import views_in
from artoo.world.selftest import prove
from artoo.world.view_place import ViewPlace, Views

_T = TypeVar("_T")


@dataclass
class World:
    """A home with a project, and what a task would keep. `artoo_home` lies in the home, as in real life."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def artoo_home(self) -> Path:
        return self.home / ".artoo"

    @property
    def roots(self) -> Roots:
        return Roots(home=self.home, workspace=self.home / "artoo_workspace", project=self.project)

    def bash(self, script: str, *, limits: Limits | None = None, read_only: bool = False) -> SandboxRequest:
        return SandboxRequest.bash(
            script,
            cwd=self.project,
            roots=self.roots,
            task_id="task-1",
            limits=limits,
            read_only=read_only,
        )

    def request(self) -> SandboxRequest:
        return replace(self.bash(""), argv=())


@pytest.fixture
def world(tmp_path: Path) -> World:
    home = tmp_path.resolve() / "home"
    (home / "project").mkdir(parents=True)
    return World(home)


@dataclass(frozen=True)
class Ran:
    """A command that ran in its task's view, and what settling that would do."""

    run: ViewRun
    place: ViewPlace
    artoo_home: Path
    difference: Difference

    @property
    def status(self) -> RunStatus:
        return self.run.status

    @property
    def exit_code(self) -> int | None:
        return self.run.exit_code

    @property
    def stdout(self) -> Captured:
        return self.run.stdout

    @property
    def stderr(self) -> Captured:
        return self.run.stderr

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.run.changes

    def apply(self, paths: Iterable[str] | None = None) -> ApplyReport:
        """Settles what was read right after the command."""
        chosen = None if paths is None else tuple(paths)
        with opened(self.place, self.artoo_home) as view:
            return view.apply(self.difference, digest=self.difference.digest, paths=chosen).report

    def drop(self) -> None:
        self.place.remove()


@dataclass(frozen=True)
class Commands:
    """A tier, for commands that are each settled or dropped: the task's view is closed after each."""

    sandbox: Sandbox
    artoo_home: Path

    async def run(self, request: SandboxRequest) -> Ran:
        view = views_in(self.sandbox, self.artoo_home, request.hide)(request.task_id, request.roots)
        program = Program(
            request.argv,
            request.limits,
            read_only=request.read_only,
            unconfined=request.unconfined,
            env=request.env,
            stdin=request.stdin,
            hosts=request.hosts,
            heard=request.heard,
        )
        try:
            run = await view.run(program)
        finally:
            await view.close()
        place = Views(self.artoo_home).place(request.task_id)
        with opened(place, self.artoo_home) as closing:
            return Ran(run, place, self.artoo_home, closing.difference())


def _in_a_loop_of_its_own(work: Coroutine[None, None, _T]) -> _T:
    """The result of what is awaited, also within a test that is awaited itself."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@functools.cache
def _proved(tier: str) -> str:
    """Empty when the tier works here, else the reason; tried once a session."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        artoo_home = Path(place).resolve()
        problem = "not offered on this system"
        for candidate in candidates(artoo_home):
            if candidate.tier == tier:
                problem = _in_a_loop_of_its_own(prove(candidate.build(candidate.stage_homes), artoo_home)).problem
                if not problem:
                    return ""
        return problem


def require_tier(tier: str) -> None:
    problem = _proved(tier)
    if problem:
        pytest.skip(f"tier {tier} does not work here: {problem}")


def first(tier: str, artoo_home: Path) -> Candidate:
    return next(candidate for candidate in candidates(artoo_home) if candidate.tier == tier)


@pytest.fixture(params=["bubblewrap", "namespaces"])
def any_overlay(request: pytest.FixtureRequest, world: World) -> Commands:
    """Each tier that stages changes."""
    return _overlay(str(request.param), world)


@pytest.fixture
def sandbox(world: World) -> Commands:
    """The best tier that stages changes."""
    for tier in ("bubblewrap", "namespaces"):
        if not _proved(tier):
            return _overlay(tier, world)
    pytest.skip(f"no tier that stages changes works here: {_proved('namespaces')}")


def _overlay(tier: str, world: World) -> Commands:
    require_tier(tier)
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first(tier, world.artoo_home)
    return Commands(candidate.build(candidate.stage_homes), world.artoo_home)


MakeWorld = Callable[[], World]


def asked(changes: Iterable[Change]) -> list[str]:
    """The paths of changes that would need consent at the end of a task."""
    found = (classified(change, within=True) for change in changes)
    return [one.path for one in found if one.change_class is not ChangeClass.SILENT]


def why(change: Change) -> str:
    """Why a change needs consent; empty when it needs none."""
    return classified(change, within=True).reason
