"""One command in a sandbox, with input, output, terminal size, stop grace, and input detection."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import stat
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Captured
from artoo.ports.workspace import Command, Ended, EndStatus
from artoo.sandbox.limits.monitor import SandboxMonitor
from artoo.sandbox.network.command_proxy import CommandNetwork
from artoo.sandbox.output import Output, StreamName
from artoo.sandbox.supervisor.client import SupervisorClient, until_writable
from artoo.sandbox.supervisor.processes import processes, read_file
from artoo.sandbox.supervisor.starting import file_of

_TERMINAL_SIZE = (24, 80)
_END_OF_INPUT = b"\x04"
"""The byte that a terminal in its normal mode treats as end of input (Control-D)."""
_UNREAD_SECONDS = 10.0
"""Number of seconds that `write` waits for a process that does not read its input."""
_KILLED_SECONDS = 10.0
"""Number of seconds to wait for a process after SIGKILL. It takes longer only if the process is stuck in a system
call."""
_AGAIN_SECONDS = 0.5
"""Number of seconds before SIGKILL is sent again."""
_LOOK_SECONDS = 0.05
_MOST_NAMED = 5


class SandboxProcess:
    """Implements `ports.workspace.Process` for a command that a supervisor started. It must be used in one event
    loop.

    `network` is a context that is entered before the command starts and exited when it has ended. `watch` reports
    the limits that the command had exceeded before it ended.
    """

    def __init__(
        self,
        client: SupervisorClient,
        process_id: str,
        command: Command,
        output: Output,
        *,
        watch: SandboxMonitor,
        network: AbstractAsyncContextManager[CommandNetwork] | None = None,
    ) -> None:
        self._client = client
        self._network = network
        self._watch = watch
        self._denied: tuple[str, ...] = ()
        self._leave = AsyncExitStack()
        self.id = process_id
        self._command = command
        self._output = output
        self._began = time.monotonic()
        self._exited = asyncio.Event()
        self._finished = asyncio.Event()
        self._finishing: asyncio.Task[None] | None = None
        self._status: int | None = None
        self._left: tuple[str, ...] = ()
        self._reason: EndStatus | None = None
        self._notes: list[str] = []
        self.ended: Ended | None = None
        self._input: int | None = None
        self._writing = asyncio.Lock()

    @property
    def argv(self) -> tuple[str, ...]:
        return self._command.argv

    @property
    def waits_for_input(self) -> bool:
        return self._input is not None and not self._exited.is_set() and waits_for_input(self._input)

    @property
    def printed(self) -> tuple[Captured, Captured]:
        return self._output.printed

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        return self._output.read(offset, limit)

    async def background(self) -> tuple[str, ...]:
        if self._left:
            with suppress(SandboxError):  # in a sandbox that has ended, no command runs
                self._left = await self._client.processes_of(self.id)
        return tuple(each.rpartition(" (pid ")[0] or each for each in self._left)

    async def wait(self, seconds: float | None = None) -> Ended | None:
        if self.ended is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._finished.wait()
        return self.ended

    async def write(self, data: bytes, *, end: bool = False) -> None:
        async with self._writing:
            if self._input is None or self._exited.is_set():
                raise SandboxError(f"process {self.id} takes no input: it has ended, or was started without")
            if self._command.pty:
                data += _END_OF_INPUT if end else b""
            left = memoryview(data)
            while left:
                left = left[await self._write_some(left) :]
            if end and not self._command.pty:
                self._close_input()

    async def stop(self, grace_seconds: float = 2.0) -> Ended:
        """Stop the command and its background processes."""
        await self._end("stopped", grace_seconds)
        await self._until_gone(_KILLED_SECONDS)
        return await self._wait_for_end()

    async def end_at_limit(self, status: EndStatus, note: str) -> None:
        """Kill the command because it exceeded a limit of the sandbox."""
        self._notes.append(note)
        await self._end(status, 0.0)

    def close(self) -> None:
        """Close the process's descriptors when the sandbox has ended. Idempotent."""
        self._output.close()
        self._close_input()

    # --- Starting -----------------------------------------------------------------------------------------------

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, confined: str = "") -> None:
        """Start the command with exactly these arguments and variables. `confined`: see MODE in the module
        `supervisor`.

        Raises SandboxError. In that case the descriptors of the process are closed.
        """
        command = self._command
        if self._network is not None:
            entered = await self._enter(self._network)
            env = {**env, **entered.environment}
        given: list[int] = []
        printed: list[tuple[int, StreamName]] = []
        try:
            if not command.pty:
                self._make_pipes(given, printed)
            mode = f"{'terminal' if command.pty else 'pipes'}{confined}"
            fields = (str(cwd), str(command.limits.file_bytes), mode, str(len(argv)), *argv)
            for terminal in await self._client.start(self.id, fields, env, given, self._on_end):
                self._use_terminal(terminal)
            # The end of the command cannot be reported before this, because the event loop continues only
            # afterwards.
            while printed:
                self._output.follow(*printed.pop())
        except BaseException as error:
            self.close()
            await self._leave.aclose()
            if isinstance(error, OSError):
                raise SandboxError(f"the command could not be started: {error}") from error
            raise
        finally:
            for descriptor in (*given, *(reads for reads, _ in printed)):
                os.close(descriptor)
        if command.pty and command.stdin is not None:
            await self.write(command.stdin, end=not command.interactive)

    async def _enter(self, network: AbstractAsyncContextManager[CommandNetwork]) -> CommandNetwork:
        entered = await network.__aenter__()

        async def leave() -> None:
            await network.__aexit__(None, None, None)
            self._denied = entered.denied_hosts  # the list is complete only after the exit

        self._leave.push_async_callback(leave)
        return entered

    def _make_pipes(self, given: list[int], printed: list[tuple[int, StreamName]]) -> None:
        """Add the command's standard output, error and input to `given`. Add the ends from which artoo reads to
        `printed`."""
        for stream in ("stdout", "stderr"):
            reads, writes = os.pipe()
            given.append(writes)
            printed.append((reads, stream))
        if self._command.interactive:
            reads, self._input = os.pipe()
            given.append(reads)
            os.set_blocking(self._input, False)
            if self._command.stdin:
                os.write(self._input, self._command.stdin)
        elif self._command.stdin is not None:
            with file_of(self._command.stdin) as file:
                given.append(os.dup(file.fileno()))

    def _use_terminal(self, controller: int) -> None:
        termios.tcsetwinsize(controller, _TERMINAL_SIZE)
        self._input = os.dup(controller)  # `output` closes this descriptor at the end of the stream
        os.set_blocking(self._input, False)
        self._output.follow(controller)

    # --- Input --------------------------------------------------------------------------------------------------

    async def _write_some(self, data: memoryview) -> int:
        assert self._input is not None
        try:
            return os.write(self._input, data)
        except BlockingIOError:
            try:
                async with asyncio.timeout(_UNREAD_SECONDS):
                    await until_writable(self._input)
            except TimeoutError:
                raise SandboxError(
                    f"process {self.id} has not read its input for {_UNREAD_SECONDS:.0f} s; send less, or stop it"
                ) from None
            return 0
        except OSError as error:
            raise SandboxError(f"process {self.id} does not read its input any more: {error.strerror}") from error

    def _close_input(self) -> None:
        if self._input is not None:
            os.close(self._input)
            self._input = None

    # --- The end ------------------------------------------------------------------------------------------------

    async def _end(self, reason: EndStatus, grace_seconds: float) -> None:
        if not self._exited.is_set() and self._reason is None:
            self._reason = reason
        if grace_seconds > 0 and (not self._exited.is_set() or self._left):
            await self._client.signal(self.id, signal.SIGTERM)
            await self._client.signal(self.id, signal.SIGCONT)  # a process that is stopped would not handle SIGTERM
            await self._until_gone(grace_seconds)
        if not self._exited.is_set() or self._left:
            await self._client.signal(self.id, signal.SIGKILL)

    async def _until_gone(self, seconds: float) -> None:
        """Wait at most `seconds` until the command and its background processes have ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
                while self._left:
                    self._left = await self._client.processes_of(self.id)
                    await asyncio.sleep(_LOOK_SECONDS if self._left else 0)

    async def _wait_for_end(self) -> Ended:
        deadline = time.monotonic() + _KILLED_SECONDS
        while (ended := await self.wait(_AGAIN_SECONDS)) is None:
            if time.monotonic() >= deadline:
                stuck = "it hangs in the kernel, perhaps on a file system that is gone"
                raise SandboxError(f"process {self.id} cannot be ended: {stuck}")
            # A process that was forked while the signal was being sent has not received it, so the signal is sent
            # again.
            await self._client.signal(self.id, signal.SIGKILL)
        return ended

    def _on_end(self, status: int | None, left: tuple[str, ...]) -> None:
        self._status, self._left = status, left
        self._exited.set()
        # For most commands nothing is left to wait for.
        if self._network is None and self._output.take_rest() and not self._watch.fills_disk():
            self._set_ended(time.monotonic() - self._began)
            return
        # Stored in an attribute, because the event loop keeps only weak references to tasks.
        self._finishing = asyncio.get_running_loop().create_task(self._finish())

    async def _finish(self) -> None:
        duration = time.monotonic() - self._began
        try:
            await self._output.drain()
            await self._leave.aclose()
            if self._reason is None and self._watch.fills_disk():
                await self._look_at_disk()
        except (OSError, SandboxError) as error:
            self._notes.append(f"its network ended with an error: {error}")
        finally:  # callers that wait for the command must be notified even after an error
            self._set_ended(duration)

    async def _look_at_disk(self) -> None:
        excess = await self._watch.excess_left_by(self.id)
        if excess is not None:
            self._reason = excess.status
            self._notes.append(excess.note)

    def _set_ended(self, duration: float) -> None:
        if self._output.at_end:
            # No process can print any more, so the descriptors are closed before the sandbox ends.
            self._output.close()
            self._close_input()
        status, exit_code = self._how()
        if self._left and self._reason is None:
            more = f"; and {len(self._left) - _MOST_NAMED} more" if len(self._left) > _MOST_NAMED else ""
            named = "; ".join(self._left[:_MOST_NAMED])
            self._notes.append(f"left running in the background: {named}{more}")
        notes = (*self._notes, *self._output.notes)
        self.ended = Ended(status, exit_code, *self._output.printed, duration, notes, self._denied)
        self._finished.set()

    def _how(self) -> tuple[EndStatus, int | None]:
        if self._reason is not None:
            return self._reason, None
        status = self._status
        if status is not None and os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            return ("error", code) if code else ("ok", 0)
        number = signal.SIGKILL if status is None else os.WTERMSIG(status)
        if status is None:
            self._notes.append("the sandbox ended while it ran, and all its processes with it")
        if number == signal.SIGKILL and (found := self._watch.explain_kill(self.id)) is not None:
            self._notes.append(found[1])
            return found[0], None
        if status is None:
            return "killed", None
        self._notes.append(f"ended by signal {number} ({_signal_name(number)})")
        return "killed", 128 + number


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


# --- input ------------------------------------------------------------------------------------------------------
# A best-effort check with /proc. A process waits for input in two cases. It sleeps in a read of the command's
# input, or in a call that waits for that descriptor alone: `select` and `poll` with one descriptor, as in line
# editors, or `epoll_wait` on a set with descriptor 0, as in node. Without /proc/PID/syscall (macOS, some kernels)
# the answer is always False.


_READS = {"x86_64": (0, 19), "aarch64": (63, 65)}
_SELECTS = {"x86_64": (23, 270), "aarch64": (72,)}
_POLLS = {"x86_64": (7, 271), "aarch64": (73,)}
_EPOLLS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}


def waits_for_input(ours: int) -> bool:
    """True if a process sleeps until it can read input from `ours`.

    `ours` is artoo's end of the command's input, which is the writing end of a pipe or the controlling side of a
    pseudo-terminal.
    """
    stats = processes()
    if os.isatty(ours):  # only the foreground group of a terminal may read from it
        group = b"%d" % os.tcgetpgrp(ours)
        readers = [pid for pid, fields in stats.items() if fields[2] == group and _has_as_input(pid, None)]
    else:
        pipe = os.fstat(ours)
        readers = [pid for pid in stats if _has_as_input(pid, pipe)]
    return any(map(_sleeps_in_read, readers)) and not any(stats[pid][0] in (b"R", b"D") for pid in readers)


def _has_as_input(pid: int, pipe: os.stat_result | None) -> bool:
    """True if the standard input of a process is `pipe`. If `pipe` is None, it must be a terminal."""
    try:
        found = os.stat(f"/proc/{pid}/fd/0")
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) if pipe is None else os.path.samestat(found, pipe)


def _sleeps_in_read(pid: int) -> bool:
    words = read_file(f"/proc/{pid}/syscall").split()
    if len(words) < 4 or words[0] in (b"running", b"-1"):
        return False
    machine, call, first, second = platform.machine(), int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in _READS.get(machine, ()):
        return first == 0
    if call in _SELECTS.get(machine, ()):
        return first == 1
    if call in _POLLS.get(machine, ()):
        return second == 1
    watched = read_file(f"/proc/{pid}/fdinfo/{first}") if call in _EPOLLS.get(machine, ()) else b""
    return any(line.split()[1] == b"0" for line in watched.splitlines() if line.startswith(b"tfd:"))
