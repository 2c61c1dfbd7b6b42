"""A user's home with a project, and sandboxes that work in a copy of it."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import itertools
import os
import shutil
import stat
import tempfile
import traceback
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

PLAIN_USER = 12_345
_NEW_USER_NAMESPACE = 0x10000000


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


def as_plain_user(act: Callable[[], None], *, user_namespaces: bool = True) -> None:
    """Do something without root's rights, in a process of its own.

    Without `user_namespaces` this process is in a user namespace whose own limit of further ones is 0, which is
    what `user.max_user_namespaces = 0` means for a whole machine. The machine's setting is not touched.
    """
    started, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if not user_namespaces:
                if ctypes.CDLL(None).unshare(_NEW_USER_NAMESPACE) != 0:
                    os._exit(77)
                os.write(started[1], b".")
                os.read(go_on[0], 1)
                Path("/proc/sys/user/max_user_namespaces").write_bytes(b"0")
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
                os.setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens in it
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(started[1])
    if not user_namespaces and os.read(started[0], 1):
        highest = 65_536 if os.geteuid() == 0 else 1
        first = (0, 0) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        if os.geteuid() != 0:
            Path(f"/proc/{child}/setgroups").write_bytes(b"deny")
        for name, own in zip(("uid_map", "gid_map"), first, strict=True):
            Path(f"/proc/{child}/{name}").write_bytes(b"%d %d %d" % (own, own, highest))
        os.write(go_on[1], b".")
    for descriptor in (started[0], *go_on):
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 77:
        pytest.skip("no user namespace can be made here, so none can be forbidden")
    assert code == 0
