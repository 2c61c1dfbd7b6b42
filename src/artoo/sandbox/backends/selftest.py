"""Proves a backend on this machine before it is trusted: an attempt to get out and to destroy must fail."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended
from artoo.sandbox.protocols import Backend, Layer, Layout, Sandbox

_CANARY = b"the canary lives\n"
_SECRET = b"nobody may read this\n"
_SECONDS = 120.0
"""Long, because a machine that is busy must not seem to have no sandbox."""
_SERVICE = "/var/run/mDNSResponder"
"""A UNIX socket of every Mac, where a process may make sockets and must not reach a service."""

_ATTEMPT = """
import os, socket, sys
port, artoo, marker, outside, pipe, service, key = sys.argv[1:]
supervisor = os.getppid()
def trial(name, attempt):
    try:
        attempt()
    except Exception:
        return
    print(name, flush=True)
def opened(path, more=0):
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | more))
def unix():
    made = socket.socket(socket.AF_UNIX)
    if service:
        made.connect(service)
trial('a port of this machine', lambda: socket.create_connection(('127.0.0.1', int(port)), 2).close())
trial('a UNIX socket', unix)
trial('a secret', lambda: open(key).read().index('n'))
trial('a signal to artoo', lambda: (os.kill(int(artoo), 0), open('/proc/%s/cmdline' % artoo).read().index(marker)))
trial('the memory of the supervisor', lambda: open('/proc/%d/mem' % supervisor, 'rb').close())
if sys.platform == 'linux':
    trial('descriptors of the supervisor', lambda: os.readlink('/proc/%d/fd/0' % supervisor))
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/dev/kmsg',
             '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/kernel/uevent_helper'):
    trial('the kernel by ' + path, lambda: opened(path))
for path in ('/run/artoo-selftest', '/dev/artoo-selftest'):
    trial('a new file at ' + path, lambda: (opened(path, os.O_CREAT), os.unlink(path)))
trial('a pipe outside', lambda: opened(pipe))
trial('a device', lambda: os.mknod('device', 0o20666, os.makedev(1, 3)))
for attempt in (lambda: open(outside, 'a').write('x'), lambda: os.kill(supervisor, 9)):
    try:
        attempt()
    except OSError:
        pass
os.mkdir('made')
open('made/file', 'w').close()
os.chmod('made/file', 0o755)
os.unlink('canary')
"""
"""Every line that it prints is a way out that should be closed."""

_SECOND = "import os; print(sorted(os.listdir('.')), os.listdir('made'), oct(os.stat('made/file').st_mode & 0o777))"
_SEEN = "['made'] ['file'] 0o755"


@dataclass(frozen=True, slots=True)
class _Ground:
    """Throw-away directories: `home` stands for the user's, `own` is in artoo's."""

    home: Path
    own: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def beside(self, kind: str) -> Path:
        """A file (`outside`) or named pipe (`pipe`), beside the throw-away home, that no command may touch."""
        return self.home.with_name(f"{self.home.name}.{kind}")

    @property
    def roots(self) -> Roots:
        return Roots(self.home, self.project, self.project)


async def prove(backend: Backend, artoo_home: Path) -> str:
    """Return what is wrong with a backend here; empty if it holds."""
    name = f".artoo-selftest-{uuid.uuid4().hex}"
    ground = _Ground(_proving_place(artoo_home) / name, artoo_home / name)
    try:
        with _prepared(ground) as port:
            layout = await asyncio.to_thread(_layout, backend, artoo_home, ground)
            sandbox = await backend.open(layout)
            try:
                return await _attempt(sandbox, ground, port, backend.name == "seatbelt")
            finally:
                await sandbox.close()
    except (OSError, SandboxError) as error:
        return str(error) or type(error).__name__
    finally:
        await asyncio.to_thread(_clear, ground)


def _proving_place(artoo_home: Path) -> Path:
    """Return where the throw-away home lies: beside artoo's own, which commands cannot see into."""
    beside = artoo_home.parent
    return beside if os.access(beside, os.W_OK | os.X_OK) else Path(tempfile.gettempdir()).resolve()


@contextmanager
def _prepared(ground: _Ground) -> Generator[int]:
    ground.project.mkdir(parents=True)
    (ground.home / ".ssh").mkdir()
    (ground.home / ".ssh" / "key").write_bytes(_SECRET)
    (ground.project / "canary").write_bytes(_CANARY)
    ground.beside("outside").touch()
    os.mkfifo(ground.beside("pipe"))
    listener = os.open(ground.beside("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]
    finally:
        os.close(listener)


def _layout(backend: Backend, artoo_home: Path, ground: _Ground) -> Layout:
    """Return a workspace's layout. Its directories lie in artoo's home, as a task's do. Blocking."""
    scratch = ground.own / "tmp"
    scratch.mkdir(mode=0o700, parents=True)
    if not backend.has_overlay:
        copy = ground.own / "copy"
        shutil.copytree(ground.project, copy)
        return Layout("selftest", ground.roots, artoo_home, scratch, copies=((ground.project, copy),))
    layers: list[Layer] = []
    for number, root in enumerate(backend.roots_to_cover(ground.roots)):
        upper, work = ground.own / f"{number}" / "up", ground.own / f"{number}" / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        layers.append(Layer(root, upper, work))
    return Layout("selftest", ground.roots, artoo_home, scratch, layers=tuple(layers))


async def _attempt(sandbox: Sandbox, ground: _Ground, port: int, is_mac: bool) -> str:
    marker = f"artoo-selftest-{os.getpid()}"
    named = (
        ground.beside("outside"),
        ground.beside("pipe"),
        _SERVICE if is_mac else "",
        ground.home / ".ssh" / "key",
    )
    words = (_ATTEMPT, str(port), str(os.getpid()), marker, *map(str, named))
    first = await _run(sandbox, ground, "p1", words)
    if leaks := first.stdout.text.split("\n")[:-1]:
        return f"not closed: {', '.join(leaks)}"
    if (ground.project / "canary").read_bytes() != _CANARY or (ground.project / "made").exists():
        return "a command changed the user's directory"
    if ground.beside("outside").stat().st_size:
        return "a command wrote outside of home and project"
    if first.status != "ok":
        return f"the attempt ended with {first.status}: {first.stderr.text.strip()[-300:]}"
    second = await _run(sandbox, ground, "p2", (_SECOND,))
    if second.stdout.text.strip() != _SEEN:
        said = (second.stdout.text + second.stderr.text).strip()
        return f"a second command does not see what the first did: {said[-300:]}"
    return ""


async def _run(sandbox: Sandbox, ground: _Ground, process_id: str, words: tuple[str, ...]) -> Ended:
    command = Command((sys.executable, "-I", "-S", "-c", *words), cwd=ground.project)
    process = await sandbox.start(command, process_id, ground.own / process_id)
    return await process.wait(_SECONDS) or await process.stop(0.0)


def _clear(ground: _Ground) -> None:
    for directory in (ground.home, ground.own):
        shutil.rmtree(directory, ignore_errors=True)
    ground.beside("outside").unlink(missing_ok=True)
    ground.beside("pipe").unlink(missing_ok=True)
