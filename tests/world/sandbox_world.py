"""Real homes, real sandboxes: what the tests of this folder share."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from artoo.contracts.changes import ApplyReport, Change
from artoo.contracts.settling import ChangeClass
from artoo.ports.sandbox import Limits, Roots, Sandbox, SandboxRequest, SandboxRun, TaskLedger
from artoo.world.choose import Candidate, candidates
from artoo.world.classes import classified
from artoo.world.selftest import prove


@dataclass
class World:
    """A home with a project, and what a task would keep. `artoo_home` lies in the home, as in real life."""

    home: Path
    ledger: TaskLedger = field(default_factory=TaskLedger)

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
            ledger=self.ledger,
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


async def applied(run: SandboxRun) -> ApplyReport:
    """Applies all changes of a run."""
    async with run.staged:
        return await run.staged.apply(digest=run.staged.digest)


@functools.cache
def _proved(tier: str) -> str:
    """Empty when the tier works here, else the reason; tried once a session."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        artoo_home = Path(place).resolve()
        problem = "not offered on this system"
        for candidate in candidates(artoo_home):
            if candidate.tier == tier:
                problem = asyncio.run(prove(candidate.build(candidate.stage_homes), artoo_home)).problem
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
def any_overlay(request: pytest.FixtureRequest, world: World) -> Sandbox:
    """Each tier that stages changes."""
    return _overlay(str(request.param), world)


@pytest.fixture
def sandbox(world: World) -> Sandbox:
    """The best tier that stages changes."""
    for tier in ("bubblewrap", "namespaces"):
        if not _proved(tier):
            return _overlay(tier, world)
    pytest.skip(f"no tier that stages changes works here: {_proved('namespaces')}")


def _overlay(tier: str, world: World) -> Sandbox:
    require_tier(tier)
    world.artoo_home.mkdir(mode=0o700, exist_ok=True)
    candidate = first(tier, world.artoo_home)
    return candidate.build(candidate.stage_homes)


MakeWorld = Callable[[], World]


def asked(changes: Iterable[Change]) -> list[str]:
    """The paths of changes that would need consent at the end of a task."""
    found = (classified(change, within=True) for change in changes)
    return [one.path for one in found if one.change_class is not ChangeClass.SILENT]


def why(change: Change) -> str:
    """Why a change needs consent; empty when it needs none."""
    return classified(change, within=True).reason
