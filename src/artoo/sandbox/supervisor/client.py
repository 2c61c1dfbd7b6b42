"""The client of a supervisor, with packets, answers, command ends, and the start timeout.

All methods must be called in one event loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from artoo.contracts.errors import SandboxError
from artoo.sandbox.supervisor.starting import file_of

_MOST_PACKET = 64 * 1024
"""The maximum number of bytes of a packet. A larger request is sent in a file, because the kernel's limit for
packets depends on its settings."""
_MOST_REPLY, _MOST_DESCRIPTORS = 96 * 1024, 8
_READY_SECONDS = 120.0
"""The timeout for the start of a supervisor. It is long, because Python starts slowly on a very busy machine."""
_LOST = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)
HAS_ENDED = "the sandbox has ended; the next command starts a new one"

OnEnd = Callable[[int | None, tuple[str, ...]], None]
"""Called with the wait status of a command and the names of processes that it left running. The status is None if
the supervisor has ended, because all processes of the sandbox ended with it."""


def packed(env: Mapping[str, str]) -> bytes:
    """Encode environment variables in the format that the supervisor reads."""
    return os.fsencode("\0".join(f"{name}={value}" for name, value in env.items()))


class SupervisorReply(NamedTuple):
    """An answer of the supervisor. The caller must close the descriptors."""

    fields: list[bytes]
    descriptors: list[int]


class SupervisorClient:
    """The connection to one supervisor."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[SupervisorReply] = self._loop.create_future()
        self._answers = {"": self._ready}
        self._running: dict[str, OnEnd] = {}
        self._sending = asyncio.Lock()
        self._killing: set[asyncio.Task[None]] = set()
        self.alive = True
        channel.setblocking(False)
        self._loop.add_reader(channel, self._receive)

    async def ready(self) -> list[int]:
        """Wait until the supervisor serves, and return its descriptors. Raises SandboxError."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                return (await self._ready).descriptors
        except TimeoutError:
            raise SandboxError(f"the sandbox did not start within {_READY_SECONDS:.0f} seconds") from None

    async def start(
        self, name: str, fields: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], on_end: OnEnd
    ) -> list[int]:
        """Start a command and return its descriptors. If it has a pseudo-terminal, this is one of them.

        `fields`: the fields of the request, from CWD to the last argument (see `supervisor`). If the call is
        cancelled, the process is killed. Raises SandboxError.
        """
        if name in self._answers or name in self._running:
            raise SandboxError(f"there is already a process {name} in this sandbox")
        packet = b"\0".join((os.fsencode("\0".join(fields)), packed(env)))
        if packet.count(b"\0") != len(fields) + len(env) - 1:
            raise SandboxError(
                "an argument or a variable of the command contains a NUL byte, which no program takes"
            )
        answer = self._answers[name] = self._loop.create_future()
        self._running[name] = on_end
        try:
            if len(packet) <= _MOST_PACKET:
                await self._send(b"start", name, packet, descriptors)
            else:
                with file_of(packet) as file:
                    await self._send(b"start", name, b"memory", (*descriptors, file.fileno()))
            return (await answer).descriptors
        except BaseException:
            self._running.pop(name, None)
            self._answers.pop(name, None)
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                for descriptor in answer.result().descriptors:
                    os.close(descriptor)
            # The command may have started although the caller did not wait for the answer. It is killed in a
            # separate task, because sending may block while the socket is full.
            killing = self._loop.create_task(self.signal(name, signal.SIGKILL))
            self._killing.add(killing)
            killing.add_done_callback(self._killing.discard)
            raise

    async def signal(self, process_id: str, number: int) -> None:
        """Send a signal to all processes of a command. Does nothing when the sandbox has ended."""
        with suppress(SandboxError):
            await self._send(b"signal", process_id, b"%d" % number)

    async def processes_of(self, process_id: str) -> tuple[str, ...]:
        """Return the names of a command's running processes, even after the command itself ended."""
        with suppress(SandboxError):
            return tuple(map(_shown, (await self._ask(b"list", process_id)).fields))
        return ()

    async def listen(self, name: str) -> socket.socket:
        """Return a socket that listens on an unused port of 127.0.0.1 inside the sandbox. Raises SandboxError."""
        return socket.socket(fileno=(await self._ask(b"listen", f"{name} network")).descriptors[0])

    def close(self) -> None:
        """Close the socket, which ends the supervisor. Idempotent."""
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(SandboxError(HAS_ENDED))
                answer.exception()  # reads the exception, so that asyncio does not warn if no caller waits for it
        running, self._running = self._running, {}
        for on_end in running.values():
            on_end(None, ())

    async def _ask(self, verb: bytes, name: str) -> SupervisorReply:
        answer = self._answers.get(name)
        if answer is None:
            answer = self._answers[name] = self._loop.create_future()
            try:
                await self._send(verb, name)
            except BaseException:
                self._answers.pop(name, None)
                raise
        return await asyncio.shield(answer)

    async def _send(self, verb: bytes, name: str, rest: bytes = b"", descriptors: Sequence[int] = ()) -> None:
        packet = b"\0".join((verb, os.fsencode(name), rest))
        async with self._sending:
            while True:
                if not self.alive:
                    raise SandboxError(HAS_ENDED)
                try:
                    socket.send_fds(self._channel, [packet], list(descriptors), socket.MSG_NOSIGNAL)
                    return
                except BlockingIOError:
                    await until_writable(self._channel.fileno())
                except OSError as error:
                    if error.errno not in _LOST:
                        raise SandboxError(f"the sandbox cannot be reached: {error.strerror}") from error
                    self.close()

    def _receive(self) -> None:
        """Receive one packet. The event loop calls this again while more packets are available."""
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._channel, _MOST_REPLY, _MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            packet, descriptors = b"", []
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        verb, _, rest = packet.partition(b"\0")
        name, *fields = rest.split(b"\0")
        process_id = os.fsdecode(name)
        if not packet:
            self.close()
        elif verb == b"ended":
            on_end = self._running.pop(process_id, None)
            if on_end is not None:
                on_end(int(fields[0]), tuple(map(_shown, fields[1:])))
        else:
            self._take(verb, "" if verb == b"ready" else process_id, SupervisorReply(fields, descriptors))

    def _take(self, verb: bytes, process_id: str, answer: SupervisorReply) -> None:
        waiting = self._answers.pop(process_id, None)
        if waiting is None or waiting.done():
            for descriptor in answer.descriptors:
                os.close(descriptor)
        elif verb == b"failed":
            number, what = answer.fields
            reason = os.strerror(int(number)) if int(number) else "failed"
            waiting.set_exception(SandboxError(f"the command could not be started: {_shown(what)}: {reason}"))
        else:
            waiting.set_result(answer)


async def until_writable(descriptor: int) -> None:
    """Wait until a non-blocking descriptor is writable."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(descriptor)


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "replace")
