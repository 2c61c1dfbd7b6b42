"""A home with a project, and a living sandbox over it: what the tests of this folder share."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended, Process
from artoo.sandbox.backends.bubblewrap import BubblewrapBackend, BubblewrapSandbox, find_bubblewrap
from artoo.sandbox.protocols import Layer, Layout

USER_NAMESPACE = os.geteuid() != 0
"""Whether bubblewrap makes a user namespace: root can do without."""
PATIENCE = 20.0


@dataclass
class World:
    """A home with a project, artoo's home in it, and the directories of one task."""

    home: Path
    user_namespace: bool = USER_NAMESPACE
    numbers: count[int] = field(default_factory=count)

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def artoo_home(self) -> Path:
        return self.home / ".artoo"

    @property
    def task(self) -> Path:
        return self.artoo_home / "workspaces" / "t"

    @property
    def upper(self) -> Path:
        """The upper directory of the home."""
        return self.task / "upper" / "0" / "up"

    @property
    def roots(self) -> Roots:
        return Roots(self.home, self.home / "artoo_workspace", self.project)

    @property
    def backend(self) -> BubblewrapBackend:
        return BubblewrapBackend(next(find_bubblewrap()), self.user_namespace)

    def layout(self) -> Layout:
        work = self.upper.with_name("work")
        for place in (self.upper, work, self.task / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        layers = tuple(Layer(root, self.upper, work) for root in self.backend.roots_to_cover(self.roots)[:1])
        return Layout("t", self.roots, self.artoo_home, self.task / "tmp", layers)

    @asynccontextmanager
    async def sandbox(self, change: Callable[[Layout], Layout] = lambda one: one) -> AsyncGenerator[Commands]:
        """A living sandbox, closed at the end."""
        sandbox = await self.backend.open(change(self.layout()))
        try:
            yield Commands(self, sandbox)
        finally:
            await sandbox.close()


@dataclass
class Commands:
    """Starts commands in one sandbox."""

    world: World
    sandbox: BubblewrapSandbox

    async def start(self, *argv: str, **more: object) -> Process:
        command = replace(Command(argv), **more)  # pyright: ignore[reportArgumentType] - the fields of Command
        name = f"p{next(self.world.numbers)}"
        return await self.sandbox.start(command, name, self.world.task / "output" / name)

    async def run(self, *argv: str, **more: object) -> Ended:
        process = await self.start(*argv, **more)
        ended = await process.wait(PATIENCE)
        assert ended is not None, f"{argv} did not end: {process.printed}"
        return ended

    async def bash(self, script: str, **more: object) -> Ended:
        return await self.run("bash", "-c", script, **more)

    async def says(self, script: str, **more: object) -> str:
        """Run a script that must succeed, and return what it printed."""
        ended = await self.bash(script, **more)
        assert ended.exit_code == 0, (ended.status, ended.stderr.text, ended.stdout.text)
        return ended.stdout.text


async def until(true: Callable[[], bool], what: str = "it never came true") -> None:
    """Wait for a state, not for a time."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)


def remove(place: Path) -> None:
    """Remove a tree in which a kernel's work directory may be closed to its owner."""
    for directory, _, _ in os.walk(place):
        os.chmod(directory, 0o700)
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(place)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the user that runs the tests; `as_plain_user` runs a file again as another one."""
    home = tmp_path.resolve() / "home"
    (home / "project").mkdir(parents=True)
    return World(home)


@contextmanager
def mounted_disk(place: Path) -> Generator[None]:
    """Mount another file system at `place`; skip where that is not allowed."""
    done = subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)
