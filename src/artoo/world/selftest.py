"""Proves a tier on this machine before it is trusted: a canary must survive an attempt on its life."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Limits, Roots, Sandbox, SandboxRequest
from artoo.ports.world import Program
from artoo.world.opening import OpenedViews
from artoo.world.overlay import OverlaySandbox

_CANARY = b"the canary lives\n"
_SECRET = b"nobody may read this\n"
_LIMITS = Limits(wall_seconds=20.0, processes=64)

# every line that it prints is a way out that should be closed
_ATTEMPT = """
import os, socket, sys
port, parent = int(sys.argv[1]), int(sys.argv[2])
def trial(name, act):
    try:
        act()
    except Exception:
        return
    print(name)
trial('network', lambda: socket.create_connection(('127.0.0.1', port), 2).close())
def unix():
    made = socket.socket(socket.AF_UNIX)
    if sys.argv[6]:
        made.connect(sys.argv[6])
trial('unix socket', unix)
trial('secret', lambda: open('.ssh/key').read().index('n'))
trial('signal to artoo', lambda: (os.kill(parent, 0), open('/proc/%d/cmdline' % parent).read().index(sys.argv[3])))
def opened(path, more=0):
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | more))
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger', '/dev/kmsg',
             '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/kernel/uevent_helper'):
    trial('the kernel by ' + path, lambda: opened(path))
for path in ('/run/artoo-selftest', '/dev/artoo-selftest'):
    trial('memory by ' + path, lambda: (opened(path, os.O_CREAT), os.unlink(path)))
trial('a pipe outside', lambda: opened(sys.argv[5]))
def groups():
    with open('/proc/self/mountinfo', errors='surrogateescape') as file:
        return [line.split()[4] for line in file if ' - cgroup2 ' in line]
def into(group):
    import ctypes, struct
    where = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    given = struct.pack('11Q', 1 << 33, 0, 0, 0, 17, 0, 0, 0, 0, 0, where)
    child = ctypes.CDLL(None).syscall(435, given, ctypes.c_size_t(len(given)))
    if child == 0:
        os._exit(0)
    if child < 0:
        raise OSError
if sys.platform == 'linux':
    for group in groups():
        trial('a control group', lambda: opened(group + '/cgroup.procs'))
        trial('making a control group', lambda: os.mkdir(group + '/artoo-selftest'))
        trial('being born into a control group', lambda: into(group))
trial('a device', lambda: os.mknod('device', 0o20666, os.makedev(1, 3)))
try:
    open(sys.argv[4], 'a').write('x')
except OSError:
    pass
os.mkdir('made')
with open('made/file', 'w') as file:
    file.write('x')
os.unlink('canary')
"""


_SERVICE = "/var/run/mDNSResponder"
"""A UNIX socket of every Mac, where to have a socket is allowed and to reach somebody is not."""
_HIDDEN_MEMORY = """
import os, time
held = os.memfd_create('held')
for _ in range(96):
    os.write(held, bytes(1 << 20))
time.sleep(5)
"""
_LITTLE = Limits(wall_seconds=20.0, processes=64, memory_bytes=64 * MIB)

_FIRST = "import os; os.unlink('canary'); os.mkdir('left'); open('left/file', 'w').write('x')"
_SECOND = "import os; print(sorted(os.listdir('.')), os.listdir('left'))"
_SEEN = "['left'] ['file']"


@dataclass(frozen=True, slots=True)
class Trial:
    """What a self-test found: empty `problem` means that the tier holds."""

    problem: str = ""


async def prove(sandbox: Sandbox, place: Path) -> Trial:
    """Runs the attempt in a throw-away home below `place`."""
    home = place / f".artoo-selftest-{uuid.uuid4().hex}"
    try:
        with _prepared(home) as port:
            trial = await _attempt(sandbox, home, port)
            if not trial.problem and sandbox.tier != "seatbelt":  # where nobody counts a command's memory
                trial = await _bounded(sandbox, home)
            if trial.problem or not isinstance(sandbox, OverlaySandbox):
                return trial
            return await _layered(sandbox, home)
    except (OSError, SandboxError) as error:
        return Trial(str(error) or type(error).__name__)
    finally:
        await asyncio.to_thread(_clear, home)


def _outside(home: Path) -> Path:
    """A file next to the throw-away home, which no command may touch."""
    return home.with_name(f"{home.name}.outside")


def _pipe(home: Path) -> Path:
    """A named pipe next to the throw-away home, at which somebody listens."""
    return home.with_name(f"{home.name}.pipe")


def _clear(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    _outside(home).unlink(missing_ok=True)
    _pipe(home).unlink(missing_ok=True)


@contextmanager
def _prepared(home: Path) -> Generator[int, None, None]:
    (home / "project").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").write_bytes(_SECRET)
    (home / "project" / "canary").write_bytes(_CANARY)
    _outside(home).touch()
    os.mkfifo(_pipe(home))
    listener = os.open(_pipe(home), os.O_RDONLY | os.O_NONBLOCK)
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]
    finally:
        os.close(listener)


async def _attempt(sandbox: Sandbox, home: Path, port: int) -> Trial:
    project = home / "project"
    marker = f"artoo-selftest-{os.getpid()}"
    script = _ATTEMPT.replace("'.ssh/key'", repr(str(home / ".ssh" / "key")))
    service = _SERVICE if sandbox.tier == "seatbelt" else ""
    given = (str(port), str(os.getpid()), marker, str(_outside(home)), str(_pipe(home)), service)
    request = SandboxRequest(
        argv=(sys.executable, "-I", "-S", "-c", script, *given),
        cwd=project,
        roots=Roots(home, project, project),
        task_id="selftest",
        limits=_LIMITS,
    )
    run = await sandbox.look(request)
    if (project / "canary").read_bytes() != _CANARY:
        return Trial("the canary was deleted for real")
    if _outside(home).stat().st_size:
        return Trial("a file outside home and project was written")
    if (project / "made").exists():
        return Trial("a directory was made for real")
    leaks = run.stdout.text.split("\n")
    if any(leaks):
        return Trial(f"not closed: {', '.join(filter(None, leaks))}")
    if sandbox.tier in ("landlock", "seatbelt"):
        return Trial() if run.needs_confirmation else Trial("a refused write was not noticed")
    if run.status != "ok":
        return Trial(f"the attempt ended with {run.status}: {run.stderr.text.strip()[-300:]}")
    found = {(change.kind, change.path.rpartition("/")[2]) for change in run.changes}
    wanted = {(ChangeKind.DELETED, "canary"), (ChangeKind.CREATED, "made"), (ChangeKind.CREATED, "file")}
    return Trial() if found == wanted else Trial(f"the changes were not read rightly: {sorted(found)}")


async def _bounded(sandbox: Sandbox, home: Path) -> Trial:
    """Whether memory counts that belongs to no process and lies in no file system."""
    argv = (sys.executable, "-I", "-S", "-c", _HIDDEN_MEMORY)
    project = home / "project"
    request = SandboxRequest(argv, project, Roots(home, project, project), "selftest", limits=_LITTLE)
    run = await sandbox.look(request)
    held = run.status == "memory_limit"
    return Trial() if held else Trial(f"hidden memory was not noticed: the attempt ended with {run.status}")


async def _layered(sandbox: OverlaySandbox, home: Path) -> Trial:
    """Whether a second command sees what a first one did, though the view lies inside the home, as artoo's does."""
    project = home / "project"
    view = OpenedViews(sandbox, home / ".artoo")("selftest", Roots(home, project, project))
    try:
        await view.run(Program((sys.executable, "-I", "-S", "-c", _FIRST), _LIMITS))
        run = await view.run(Program((sys.executable, "-I", "-S", "-c", _SECOND), _LIMITS))
    finally:
        await view.close()
    if run.stdout.text.strip() != _SEEN:
        return Trial(f"layers over layers do not hold: {run.stderr.text.strip()[-300:]}")
    return Trial() if (project / "canary").exists() else Trial("the canary was deleted for real")
