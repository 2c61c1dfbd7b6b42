"""Start and end a running sandbox, with its supervisor, control group and monitor."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command, Process
from artoo.sandbox.limits.cgroup import Group, open_group
from artoo.sandbox.limits.monitor import Excess, SandboxMonitor
from artoo.sandbox.protocols import Layout
from artoo.sandbox.supervisor.client import HAS_ENDED, SupervisorClient
from artoo.sandbox.supervisor.process import SandboxProcess
from artoo.sandbox.supervisor.starting import file_of, program_file, python_running, starting_environment

_END_SECONDS = 10.0
Kind = TypeVar("Kind", bound="LivingSandbox")


@dataclass(slots=True)
class Launched:
    """A supervisor that was started, and its resources.

    `written`: the directories outside of the sandbox in which the data that commands write are stored. `clean_up`
    is called when the sandbox has ended. `env`: environment variables for every command. `hidden`: paths that
    commands cannot see.
    """

    process: subprocess.Popen[bytes]
    channel: socket.socket
    complaints: int
    written: tuple[Path, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    hidden: tuple[str, ...] = ()
    clean_up: Callable[[], object] = lambda: None

    def complaint(self) -> str:
        """Return the last text that the supervisor has written to standard error."""
        return os.pread(self.complaints, 1 << 16, 0).decode("utf-8", "replace").strip()[-500:]

    def end(self) -> None:
        """End the supervisor and wait for it. All its processes end with it. Then clean up. Blocking."""
        self.channel.close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it hangs in a mount, or was stopped from outside, so it is killed
            _kill_tree(self.process.pid)
            self.process.wait()
        os.close(self.complaints)
        self.clean_up()


def launch(
    modules: tuple[str, ...],
    options: Sequence[str],
    files: Mapping[str, bytes],
    group: Group | None,
    within: Callable[[Mapping[str, int]], Iterable[str]] = lambda _: (),
) -> tuple[subprocess.Popen[bytes], socket.socket, int]:
    """Start a supervisor. Returns its process, artoo's end of the socket, and the file with its standard error.
    Blocking.

    Each file in `files`, except `seccomp`, becomes an option with the number of its descriptor. `within` takes
    these descriptors and returns the arguments of the program that starts the supervisor, for example bubblewrap.
    """
    # macOS has no SOCK_SEQPACKET for UNIX sockets.
    kind = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
    with ExitStack() as opened:
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        opened.callback(theirs.close)
        given = {name: opened.enter_context(file_of(data)).fileno() for name, data in files.items()}
        program = opened.enter_context(program_file(modules)).fileno()
        named = (f"{name}={number}" for name, number in given.items() if name != "seccomp")
        argv = (*within(given), *python_running(program, str(theirs.fileno()), *options, *named))
        complaints = opened.enter_context(file_of(b"")).fileno()
        process = subprocess.Popen(
            argv if group is None else group.joining(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=(program, theirs.fileno(), *given.values()),
            env=starting_environment(),
            cwd="/",
            start_new_session=True,
        )
        return process, ours, os.dup(complaints)


class LivingSandbox:
    """Implements `protocols.Sandbox` over a supervisor. A subclass for each backend starts the commands."""

    def __init__(self, layout: Layout, launched: Launched, group: Group | None) -> None:
        self.layout = layout
        self.launched = launched
        self.hidden = launched.hidden
        self.root: int | None = None
        self.client = SupervisorClient(launched.channel)
        self._group = group
        self.watch = SandboxMonitor(launched.written, layout.limits, self._end_at_limit)
        self._processes: dict[str, SandboxProcess] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Future[None] | None = None

    @property
    def alive(self) -> bool:
        return self.client.alive and self._closing is None

    async def begin(self) -> None:
        """Wait until the sandbox can start commands. Raises SandboxError."""
        try:
            leader = self.take_over(await self.client.ready())
        except (SandboxError, OSError) as error:
            raise SandboxError(f"the sandbox could not be set up: {self.launched.complaint() or error}") from error
        self.watch.start(leader)

    def take_over(self, descriptors: list[int]) -> int:
        """Close the supervisor's descriptors, which only overlays need. Return its pid as seen from outside."""
        for descriptor in descriptors:
            os.close(descriptor)
        return self.launched.process.pid

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        raise NotImplementedError

    async def run(
        self, process: SandboxProcess, argv: Sequence[str], env: Mapping[str, str], cwd: Path, confined: str = ""
    ) -> Process:
        """Start the command of a process object that was prepared. Raises SandboxError."""
        if not self.alive:
            raise SandboxError(HAS_ENDED)
        self._processes[process.id] = process
        try:
            await process.start(argv, env, cwd, confined)
        except BaseException:
            del self._processes[process.id]
            raise
        self.watch.wake()
        return process

    async def refresh(self) -> None:
        """Do nothing, because the workspace itself updates its copies."""

    async def close(self) -> None:
        if self._closing is None:
            # Closing the socket ends the supervisor and all its descendants.
            self.client.close()
            self._closing = asyncio.get_running_loop().run_in_executor(None, self.launched.end)
        await asyncio.shield(self._closing)
        await self.watch.stop()
        if self._group is not None:
            await self._group.close()
        for process in self._processes.values():
            await process.wait()
            process.close()

    def _end_at_limit(self, excess: Excess) -> None:
        """Kill the command that exceeds a limit. If the command is not known, kill the largest process."""
        process = None if excess.command is None else self._processes.get(excess.command)
        if process is None:
            with suppress(OSError):
                os.kill(excess.pid, signal.SIGKILL)
            return
        task = asyncio.get_running_loop().create_task(process.end_at_limit(excess.status, excess.note))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def opened(
    layout: Layout,
    directories: tuple[Path, ...],
    launch: Callable[[Group | None], Launched],
    sandbox: Callable[[Launched, Group | None], Kind],
) -> Kind:
    """Start a sandbox, in a control group of its own if possible. If the call is cancelled, everything that it
    started is ended. Raises SandboxError.

    `launch` is a blocking function. `directories`: the directories of the sandbox's files.
    """
    group = await open_group(layout.limits, directories)
    launching = asyncio.get_running_loop().run_in_executor(None, launch, group)
    try:
        launched = await asyncio.shield(launching)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError):
            await asyncio.wait({launching})
            if launching.exception() is None:
                launching.result().end()
        if group is not None:
            await group.close()
        if isinstance(error, OSError):
            raise SandboxError(f"the sandbox could not be started: {error}") from error
        raise
    made = sandbox(launched, group)
    try:
        await made.begin()
    except BaseException:
        await made.close()
        raise
    return made


def _kill_tree(pid: int) -> None:
    """Kill a process and its children. If the first process of a sandbox dies, the kernel kills all others."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for child in (*map(int, children), pid):
            os.kill(child, signal.SIGKILL)
