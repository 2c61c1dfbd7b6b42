"""A user's home with a project, and tasks that work in it: what the tests of this folder share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended
from artoo.sandbox.backends.bubblewrap import BubblewrapBackend, find_bubblewrap
from artoo.sandbox.backends.copying import CopyBackend
from artoo.sandbox.protocols import Backend
from artoo.workspace.changes.change_set import ChangeSet, read_change_set
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.workspace import LiveWorkspace, workspaces_in

PATIENCE = 30.0


@dataclass
class World:
    """A home with a project, an output folder, and artoo's home in it."""

    home: Path
    backend: Backend

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def output(self) -> Path:
        return self.home / "artoo_workspace"

    @property
    def artoo_home(self) -> Path:
        return self.home / ".artoo"

    @property
    def roots(self) -> Roots:
        return Roots(self.home, self.output, self.project)

    def directory(self, task_id: str = "t") -> WorkspaceDirectory:
        return Workspaces(self.artoo_home).directory(task_id)

    def open(self, task_id: str = "t") -> LiveWorkspace:
        return workspaces_in(self.backend, self.artoo_home)(task_id, self.roots)

    @asynccontextmanager
    async def task(self, task_id: str = "t") -> AsyncGenerator[Task]:
        """A task at work, whose workspace is closed at the end and stays on disk."""
        workspace = self.open(task_id)
        try:
            yield Task(workspace)
        finally:
            await workspace.close()

    def change_set(self, task_id: str = "t") -> ChangeSet:
        """The change set of a task that has ended, without git's specialist."""
        return read_change_set(self.directory(task_id), self.artoo_home)

    def classes(self, task_id: str = "t") -> dict[str, str]:
        """The classes of its changes, by the path below the home."""
        return by_path(self.home, self.change_set(task_id).classes)

    def does(self, *scripts: str, task_id: str = "t") -> ChangeSet:
        """What a task changes that runs these scripts, one after the other."""

        async def work() -> None:
            async with self.task(task_id) as task:
                for script in scripts:
                    await task.says(script)

        asyncio.run(work())
        return self.change_set(task_id)


def by_path(home: Path, classes: tuple[ClassifiedChange, ...]) -> dict[str, str]:
    """Classes by the path below the home."""
    return {one.path.removeprefix(f"{home}/"): one.change_class.value for one in classes}


@dataclass
class Task:
    """Runs commands in a workspace."""

    workspace: LiveWorkspace

    async def bash(self, script: str) -> Ended:
        return await self.workspace.run(Command(("bash", "-c", script)), PATIENCE)

    async def says(self, script: str) -> str:
        """Run a script that must succeed, and return what it printed."""
        ended = await self.bash(script)
        assert ended.exit_code == 0, (ended.status, ended.stderr.text, ended.stdout.text, ended.notes)
        return ended.stdout.text


async def until(true: Callable[[], bool], what: str = "it never came true") -> None:
    """Wait for a state, not for a time."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not true():
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.01)


def overlay() -> Backend:
    """The backend with an overlay that needs the least."""
    return BubblewrapBackend(next(find_bubblewrap()), os.geteuid() != 0)


def make_world(place: Path, backend: Backend) -> World:
    world = World(place.resolve() / "home", backend)
    for directory in (world.project, world.output, world.artoo_home):
        directory.mkdir(parents=True)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home over which overlays are mounted."""
    return make_world(tmp_path, overlay())


@pytest.fixture(params=["overlay", "copy"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A home over which overlays are mounted, and one whose project is copied."""
    return make_world(tmp_path, overlay() if request.param == "overlay" else CopyBackend("landlock"))
