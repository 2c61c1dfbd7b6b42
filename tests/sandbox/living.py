"""A home with a project, and a living sandbox over it or over a copy of it: what the tests of this folder share."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended, Process
from artoo.sandbox.backends.bubblewrap import BubblewrapBackend, find_bubblewrap
from artoo.sandbox.backends.select import candidates
from artoo.sandbox.backends.selftest import prove
from artoo.sandbox.protocols import Backend, Layer, Layout, Sandbox
from plain_user import PLAIN_USER

USER_NAMESPACE = os.geteuid() != 0
"""Whether bubblewrap makes a user namespace: root can do without."""
PATIENCE = 20.0


def bubblewrap(*, user_namespace: bool = USER_NAMESPACE) -> Backend:
    return BubblewrapBackend(next(find_bubblewrap()), user_namespace)


@functools.cache
def backend_named(name: str) -> Backend:
    """The backend of this name; skips the test if it does not work on this machine."""
    problem = "it is not offered on this system"
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(1) as thread:
        for candidate in candidates():
            if candidate.backend.name == name:
                proving = prove(candidate.backend, Path(place).resolve())
                problem = thread.submit(asyncio.run, proving).result()
                if not problem:
                    return candidate.backend
    pytest.skip(f"{name} does not work here: {problem}")


@dataclass
class World:
    """A home with a project, artoo's home in it, and the directories of one task."""

    home: Path
    backend: Backend = field(default_factory=bubblewrap)
    numbers: count[int] = field(default_factory=count)

    @classmethod
    def made(cls, place: Path, backend: Backend | None = None) -> World:
        world = cls(place.resolve() / "home", backend or bubblewrap())
        world.project.mkdir(parents=True)
        world.artoo_home.mkdir(mode=0o700)
        return world

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
    def copy(self) -> Path:
        """Where a workspace keeps the copy of the project, without an overlay."""
        return self.task / "copy" / "0"

    @property
    def roots(self) -> Roots:
        return Roots(self.home, self.home / "artoo_workspace", self.project)

    def layout(self) -> Layout:
        """Make what a workspace makes before its first command."""
        work = self.upper.with_name("work")
        for place in (self.upper, work, self.task / "tmp"):
            place.mkdir(parents=True, exist_ok=True)
        if not self.backend.has_overlay:
            shutil.copytree(self.project, self.copy, symlinks=True, ignore=_no_plain_things)
            copies = ((self.project, self.copy),)
            return Layout("t", self.roots, self.artoo_home, self.task / "tmp", copies=copies)
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


def _no_plain_things(directory: str, names: list[str]) -> list[str]:
    """What is no file, directory or link: devices and pipes are not copied."""
    kinds = {name: stat.S_IFMT(os.lstat(os.path.join(directory, name)).st_mode) for name in names}
    return [name for name, kind in kinds.items() if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)]


@dataclass
class Commands:
    """Starts commands in one sandbox."""

    world: World
    sandbox: Sandbox

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

    async def out(self, script: str) -> str:
        """Return what a script prints, on both streams."""
        ended = await self.bash(script)
        return ended.stdout.text + ended.stderr.text


async def until(true: Callable[[], bool], what: str = "it never came true") -> None:
    """Wait for a state, not for a time."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the user that runs the tests; `as_plain_user` runs a file again as another one."""
    return World.made(tmp_path)


@contextmanager
def plain_world(backend: Backend) -> Generator[World]:
    """A world of a plain user."""
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-")).resolve()
    world = World.made(place, backend)
    if os.geteuid() == 0:
        for path in (place, world.home, world.project, world.artoo_home):
            os.chown(path, PLAIN_USER, PLAIN_USER)
    try:
        yield world
    finally:
        shutil.rmtree(place, ignore_errors=True)


def gone(pid: int) -> bool:
    """True if a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


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
