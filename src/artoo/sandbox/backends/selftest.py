"""Test a backend by an escape attempt that must fail, with its timeout.

The attempts are to reach the outside of the sandbox and to change files there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command, Ended
from artoo.sandbox.protocols import Backend, Layer, Layout, Sandbox
from artoo.sandbox.reading.programs import this_python

_CANARY = b"the canary lives\n"
_SECRET = b"no command may read this\n"
_SECONDS = 120.0
"""The timeout is long, so that on a busy machine a working sandbox does not seem to fail."""
_SERVICE = "/var/run/mDNSResponder"
"""A UNIX socket that every Mac has. On a Mac, commands may make sockets but must not connect to a service."""

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
"""A program that prints one line for each way out of the sandbox that it finds open."""

_SECOND = "import os; print(sorted(os.listdir('.')), os.listdir('made'), oct(os.stat('made/file').st_mode & 0o777))"
_SEEN = "['made'] ['file'] 0o755"


async def prove(backend: Backend, artoo_home: Path) -> str:
    """Return the problem with a backend on this machine. Return "" if the backend works and confines commands."""
    name = f".artoo-selftest-{uuid.uuid4().hex}"
    # The temporary home is next to artoo's own, because commands cannot read artoo's home.
    parent = artoo_home.parent if os.access(artoo_home.parent, os.W_OK | os.X_OK) else tempfile.gettempdir()
    home, own = Path(await asyncio.to_thread(os.path.realpath, str(parent))) / name, artoo_home / name
    outside, pipe = home.with_name(f"{name}.outside"), home.with_name(f"{name}.pipe")
    try:
        with _prepared(home, outside, pipe) as port:
            sandbox = await backend.open(await asyncio.to_thread(_layout, backend, artoo_home, home, own))
            try:
                service = _SERVICE if backend.name == "seatbelt" else ""
                words = (str(port), str(os.getpid()), f"artoo-selftest-{os.getpid()}", str(outside), str(pipe))
                words += (service, str(home / ".ssh" / "key"))
                return await _attempt(sandbox, home / "project", own, outside, words)
            finally:
                await sandbox.close()
    except (OSError, SandboxError) as error:
        return str(error) or type(error).__name__
    finally:
        for directory in (home, own):
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        outside.unlink(missing_ok=True)
        pipe.unlink(missing_ok=True)


@contextmanager
def _prepared(home: Path, outside: Path, pipe: Path) -> Generator[int]:
    """Make a home directory with a secret and a project, and also files that no command may use. Yields a listening
    port."""
    (home / "project").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").write_bytes(_SECRET)
    (home / "project" / "canary").write_bytes(_CANARY)
    outside.touch()
    os.mkfifo(pipe)
    listener = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]
    finally:
        os.close(listener)


def _layout(backend: Backend, artoo_home: Path, home: Path, own: Path) -> Layout:
    """Return the layout of a test workspace, whose directories are in artoo's home like a task's. Blocking."""
    project, scratch = home / "project", own / "tmp"
    scratch.mkdir(mode=0o700, parents=True)
    layout = Layout("selftest", Roots(home, project, project), artoo_home, scratch)
    if not backend.has_overlay:
        shutil.copytree(project, own / "copy")
        return replace(layout, copies=((project, own / "copy"),))
    layers: list[Layer] = []
    for number, root in enumerate(backend.roots_to_cover(layout.roots)):
        upper, work = own / f"{number}" / "up", own / f"{number}" / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        layers.append(Layer(root, upper, work))
    return replace(layout, layers=tuple(layers))


async def _attempt(sandbox: Sandbox, project: Path, own: Path, outside: Path, words: tuple[str, ...]) -> str:
    async def run(process_id: str, *words: str) -> Ended:
        command = Command((this_python(), "-I", "-S", "-c", *words), cwd=project)
        process = await sandbox.start(command, process_id, own / process_id)
        return await process.wait(_SECONDS) or await process.stop(0.0)

    first = await run("p1", _ATTEMPT, *words)
    if leaks := first.stdout.text.split("\n")[:-1]:
        return f"not closed: {', '.join(leaks)}"
    if (project / "canary").read_bytes() != _CANARY or (project / "made").exists():
        return "a command changed the user's directory"
    if await asyncio.to_thread(os.path.getsize, outside):
        return "a command wrote outside of home and project"
    if first.status != "ok":
        return f"the attempt ended with {first.status}: {first.stderr.text.strip()[-300:]}"
    second = await run("p2", _SECOND)
    if second.stdout.text.strip() != _SEEN:
        said = (second.stdout.text + second.stderr.text).strip()
        return f"a second command does not see what the first did: {said[-300:]}"
    return ""
