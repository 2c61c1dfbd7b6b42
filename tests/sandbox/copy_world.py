"""A user's home with a project, and sandboxes that work in a copy of it."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended, Process, SandboxLimits
from artoo.sandbox.backends.select import candidates
from artoo.sandbox.backends.selftest import prove
from artoo.sandbox.protocols import Backend, Layer, Layout, Sandbox
from plain_user import PLAIN_USER


@dataclass
class Home:
    """A home with a project. `artoo_home` lies in the home, as in real life."""

    path: Path

    @classmethod
    def made(cls, place: Path) -> Home:
        home = cls(place.resolve() / "home")
        home.project.mkdir(parents=True)
        home.artoo_home.mkdir(mode=0o700)
        return home

    @property
    def project(self) -> Path:
        return self.path / "project"

    @property
    def artoo_home(self) -> Path:
        return self.path / ".artoo"

    @property
    def copy(self) -> Path:
        """Where a workspace keeps the copy of the project."""
        return self.artoo_home / "workspaces" / "task" / "copy" / "0"

    @property
    def scratch(self) -> Path:
        return self.artoo_home / "workspaces" / "task" / "tmp"

    def layout(self, backend: Backend, limits: SandboxLimits | None = None) -> Layout:
        """Make what a workspace makes before its first command."""
        roots = Roots(self.path, self.project, self.project)
        self.scratch.mkdir(mode=0o700, parents=True)
        layout = Layout("task", roots, self.artoo_home, self.scratch, limits=limits or SandboxLimits())
        if not backend.has_overlay:
            shutil.copytree(self.project, self.copy, symlinks=True, ignore=_no_plain_things)
            return replace(layout, copies=((self.project, self.copy),))
        layers: list[Layer] = []
        for number, root in enumerate(backend.roots_to_cover(roots)):
            upper = self.artoo_home / "upper" / str(number)
            (upper / "up").mkdir(parents=True)
            (upper / "work").mkdir()
            layers.append(Layer(root, upper / "up", upper / "work"))
        return replace(layout, layers=tuple(layers))


def _no_plain_things(directory: str, names: list[str]) -> list[str]:
    """What is no file, directory or link: devices and pipes are not copied."""
    modes = {name: os.lstat(os.path.join(directory, name)).st_mode for name in names}
    return [
        name for name, mode in modes.items() if stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
    ]


@dataclass
class Commands:
    """Runs commands in one sandbox."""

    sandbox: Sandbox
    place: Path
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def start(self, command: Command | str) -> Process:
        """Start a command; text is a script for bash."""
        if isinstance(command, str):
            command = Command(("bash", "-c", command))
        name = f"p{next(self._numbers)}"
        return await self.sandbox.start(command, name, self.place / name)

    async def run(self, command: Command | str, seconds: float = 30.0) -> Ended:
        """Run a command to its end."""
        process = await self.start(command)
        ended = await process.wait(seconds)
        return ended if ended is not None else await process.stop(0.0)

    async def out(self, script: str) -> str:
        """Return what a script prints, on both streams."""
        ended = await self.run(script)
        return ended.stdout.text + ended.stderr.text


@asynccontextmanager
async def opened(backend: Backend, home: Home, limits: SandboxLimits | None = None) -> AsyncGenerator[Commands]:
    """A sandbox over the project as it is now, closed at the end."""
    output = home.artoo_home / "output"
    output.mkdir(exist_ok=True)
    sandbox = await backend.open(home.layout(backend, limits))
    try:
        yield Commands(sandbox, output)
    finally:
        await sandbox.close()


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


def gone(pid: int) -> bool:
    """True if a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a state of the machine, of which no event tells
            await asyncio.sleep(0.01)


# --- Plain users -------------------------------------------------------------------------------------------------


@contextmanager
def plain_home() -> Generator[Home]:
    """A home of a plain user."""
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-")).resolve()
    home = Home.made(place)
    if os.geteuid() == 0:
        for path in (place, home.path, home.project, home.artoo_home):
            os.chown(path, PLAIN_USER, PLAIN_USER)
    try:
        yield home
    finally:
        shutil.rmtree(place, ignore_errors=True)
