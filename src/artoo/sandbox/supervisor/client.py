"""artoo's side of the socket to a supervisor: requests, their answers, and the ends of commands.

The supervisor may have been started by any backend. All methods are used in one event loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artoo.contracts.errors import SandboxError
from artoo.sandbox.supervisor.starting import file_of

Mode = Literal["pipes", "terminal", "given-terminal"]
"""How a command is connected; see `supervisor`."""

_MOST_PACKET = 64 * 1024
"""Larger requests travel in a file: the kernel's limit for a packet depends on the machine's settings."""
_MOST_REPLY, _MOST_DESCRIPTORS = 96 * 1024, 8
_PACKETS_AT_ONCE = 32
_READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Started:
    """A command that was started. `pid` is its process id inside; the descriptors belong to the caller.

    `terminal` is the controlling side of its pseudo-terminal. `pidfd` names its first process from outside.
    """

    pid: int
    terminal: int | None
    pidfd: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """A command as the supervisor takes it: everything is decided, paths are those of the sandbox."""

    process_id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    file_bytes: int
    mode: Mode = "pipes"
    descriptors: tuple[int, ...] = ()


OnEnd = Callable[[int | None, tuple[str, ...]], None]
"""Receives the wait status of a command and the names of processes that it left running. The status is None when
the supervisor has ended, and everything in the sandbox with it."""


class SupervisorClient:
    """The connection to one supervisor."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[tuple[int, list[int]]] = self._loop.create_future()
        self._starting: dict[str, asyncio.Future[Started]] = {}
        self._listing: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._running: dict[str, OnEnd] = {}
        self._sending = asyncio.Lock()
        self._killing: set[asyncio.Task[None]] = set()
        self.alive = True
        channel.setblocking(False)
        self._loop.add_reader(channel, self._receive)

    async def ready(self) -> tuple[int, list[int]]:
        """Wait until the supervisor serves; return its process id and descriptors that are the caller's.

        Raises SandboxError.
        """
        try:
            async with asyncio.timeout(_READY_SECONDS):
                return await self._ready
        except TimeoutError:
            raise SandboxError(f"the sandbox did not start within {_READY_SECONDS:.0f} seconds") from None

    async def start(self, request: Request, on_end: OnEnd) -> Started:
        """Start a command. A call that is cancelled leaves no process. Raises SandboxError."""
        name = request.process_id
        if name in self._starting or name in self._running:
            raise SandboxError(f"there is already a process {name} in this sandbox")
        answer: asyncio.Future[Started] = self._loop.create_future()
        self._starting[name], self._running[name] = answer, on_end
        try:
            await self._send_start(request)
            return await answer
        except BaseException:
            self._running.pop(name, None)
            self._starting.pop(name, None)
            if not answer.done() or answer.cancelled():
                self._kill_soon(name)
            elif answer.exception() is None:  # it was started in the moment in which this call was cancelled
                _close(answer.result())
                self._kill_soon(name)
            raise

    def _kill_soon(self, process_id: str) -> None:
        """Kill a command that no caller waits for, from a task of its own because the socket may be full now."""
        killing = self._loop.create_task(self.signal(process_id, signal.SIGKILL))
        self._killing.add(killing)
        killing.add_done_callback(self._killing.discard)

    async def signal(self, process_id: str, number: int) -> None:
        """Send a signal to all processes of a command. Does nothing when the sandbox has ended."""
        with suppress(SandboxError):
            await self._send((b"signal", os.fsencode(process_id), b"%d" % number))

    async def processes_of(self, process_id: str) -> tuple[str, ...]:
        """Return the names of the processes of a command that run now, also after the command itself ended."""
        answer = self._listing.get(process_id)
        if answer is None:
            answer = self._listing[process_id] = self._loop.create_future()
            try:
                await self._send((b"list", os.fsencode(process_id)))
            except SandboxError:
                self._listing.pop(process_id, None)
                return ()
        return await asyncio.shield(answer)

    def close(self) -> None:
        """Close the socket, which ends the supervisor. Idempotent."""
        self._lose()

    # --- Sending ------------------------------------------------------------------------------------------------

    async def _send_start(self, request: Request) -> None:
        variables = (f"{name}={value}" for name, value in request.env.items())
        words = (str(request.cwd), str(request.file_bytes), request.mode, str(len(request.argv)))
        fields = os.fsencode("\0".join((*words, *request.argv, *variables)))
        if fields.count(b"\0") != 3 + len(request.argv) + len(request.env):
            raise SandboxError(
                "an argument or a variable of the command contains a NUL byte, which no program takes"
            )
        head = (b"start", os.fsencode(request.process_id))
        if len(fields) <= _MOST_PACKET:
            await self._send((*head, fields), request.descriptors)
            return
        with file_of(fields) as file:
            await self._send((*head, b"memory"), (*request.descriptors, file.fileno()))

    async def _send(self, fields: Sequence[bytes], descriptors: Sequence[int] = ()) -> None:
        async with self._sending:
            while not self._send_now(fields, descriptors):
                await self._until_writable()

    def _send_now(self, fields: Sequence[bytes], descriptors: Sequence[int] = ()) -> bool:
        """Send a packet; return False when the socket is full. Raises SandboxError."""
        if not self.alive:
            raise SandboxError("the sandbox has ended; the next command starts a new one")
        try:
            socket.send_fds(self._channel, [b"\0".join(fields)], list(descriptors), socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                raise SandboxError(f"the sandbox cannot be reached: {error.strerror}") from error
            self._lose()
            raise SandboxError("the sandbox has ended; the next command starts a new one") from error
        return True

    async def _until_writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._channel, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(self._channel)

    # --- Receiving ----------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        for _ in range(_PACKETS_AT_ONCE):
            try:
                packet, descriptors, _, _ = socket.recv_fds(self._channel, _MOST_REPLY, _MOST_DESCRIPTORS)
            except BlockingIOError:
                return
            except OSError:
                packet, descriptors = b"", []
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            if not packet:
                self._lose()
                return
            try:
                self._take(packet.split(b"\0"), descriptors)
            except (ValueError, IndexError):  # no supervisor of ours says this
                self._lose()
                return

    def _take(self, fields: list[bytes], descriptors: list[int]) -> None:
        verb, name, *rest = fields
        process_id = os.fsdecode(name)
        if verb == b"ready":
            if not self._ready.done():
                self._ready.set_result((int(name), descriptors))
        elif verb in (b"started", b"failed"):
            self._take_start(process_id, verb == b"started", rest, descriptors)
        elif verb == b"ended":
            on_end = self._running.pop(process_id, None)
            if on_end is not None:
                on_end(int(rest[0]), tuple(_shown(word) for word in rest[1:]))
        elif verb == b"listed":
            answer = self._listing.pop(process_id, None)
            if answer is not None and not answer.done():
                answer.set_result(tuple(map(_shown, rest)))

    def _take_start(self, process_id: str, started: bool, rest: list[bytes], descriptors: list[int]) -> None:
        answer = self._starting.pop(process_id, None)
        result = _started(int(rest[0]), descriptors) if started else None
        if answer is None or answer.done():
            if result is not None:
                _close(result)
        elif result is not None:
            answer.set_result(result)
        else:
            what, reason = os.fsdecode(rest[1]), os.strerror(int(rest[0]))
            answer.set_exception(SandboxError(f"the command could not be started: {what}: {reason}"))

    def _lose(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        problem = SandboxError("the sandbox has ended unexpectedly; the next command starts a new one")
        for answer in (self._ready, *self._starting.values()):
            if not answer.done():
                answer.set_exception(problem)
                answer.exception()  # no warning when nobody waits for it
        for listing in self._listing.values():
            if not listing.done():
                listing.set_result(())
        running, self._running = self._running, {}
        for on_end in running.values():
            on_end(None, ())


def _started(pid: int, descriptors: list[int]) -> Started:
    """Tell the descriptors apart: a pseudo-terminal is a character device, a pidfd is not."""
    terminals = [one for one in descriptors if os.isatty(one)]
    others = [one for one in descriptors if one not in terminals]
    return Started(pid, terminals[0] if terminals else None, others[0] if others else None)


def _close(started: Started) -> None:
    for descriptor in (started.terminal, started.pidfd):
        if descriptor is not None:
            os.close(descriptor)


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "replace")
