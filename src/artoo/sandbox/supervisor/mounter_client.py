"""artoo's side of the mounter: start it, ask it, and end it with the sandbox."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.sandbox.supervisor.starting import script_file, starting_environment

_ANSWER_SECONDS = 20.0


class Mounter:
    """One helper process inside the namespaces of one sandbox. Used in one event loop."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, complaints: int) -> None:
        self._process = process
        self._channel = channel
        self._complaints = complaints
        self._joined = False
        self._asking = asyncio.Lock()

    @classmethod
    def begun(cls, namespaces: tuple[int, int], roots: tuple[Path, ...]) -> Mounter:
        """Start it. `namespaces`: descriptors of the mount and the network namespace. Raises SandboxError.

        The first request waits until it has joined them.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        complaints = os.memfd_create("artoo-complaints")
        try:
            with theirs, script_file("mounter") as script:
                numbers = (theirs.fileno(), *namespaces)
                process = subprocess.Popen(
                    (sys.executable, "-I", "-S", f"/proc/self/fd/{script.fileno()}", *map(str, (*numbers, *roots))),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    pass_fds=(script.fileno(), *numbers),
                    env=starting_environment(),
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            os.close(complaints)
            raise SandboxError(f"the sandbox's helper could not be started: {error}") from error
        ours.setblocking(False)
        return cls(process, ours, complaints)

    async def refresh(self) -> None:
        """Let the sandbox see the user's files as they are now. Raises SandboxError."""
        await self._ask(b"refresh")

    async def listen(self) -> socket.socket:
        """Return a socket that listens on a fresh port of the sandbox's own 127.0.0.1. Raises SandboxError."""
        descriptors = await self._ask(b"listen")
        if len(descriptors) != 1:
            raise SandboxError("the sandbox's helper sent no socket")
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """End it, and wait until it has left the namespaces. Blocking, for a few milliseconds. Idempotent."""
        if self._channel.fileno() < 0:
            return
        self._channel.close()
        self._process.kill()  # it holds nothing that a request could leave half done
        self._process.wait()
        os.close(self._complaints)

    async def _ask(self, request: bytes) -> list[int]:
        async with self._asking:
            if not self._joined:
                await self._answer()
                self._joined = True
            try:
                self._channel.send(request)
            except OSError as error:
                raise self._problem() from error
            return await self._answer()

    async def _answer(self) -> list[int]:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._channel, ready.set)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await ready.wait()
            answer, descriptors, _, _ = socket.recv_fds(self._channel, 4096, 1)
        except (TimeoutError, OSError) as error:
            raise self._problem() from error
        finally:
            loop.remove_reader(self._channel)
        if not answer:
            raise self._problem()
        if answer != b"ok":
            number, _, what = answer.decode("utf-8", "replace").partition(" ")
            raise SandboxError(f"the sandbox's file view could not be refreshed: {what} (errno {number})")
        return descriptors

    def _problem(self) -> SandboxError:
        said = os.pread(self._complaints, 4096, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        return SandboxError(f"the sandbox's helper does not answer: {said or 'it has ended'}")
