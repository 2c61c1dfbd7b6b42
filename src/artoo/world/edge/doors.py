"""How the edge gets its listening socket out of a command's network, before the command can run."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from artoo.world.edge import inside

_INSIDE = Path(inside.__file__)
_MOST_SECONDS = 20.0


class Door(Protocol):
    """The way to the socket of one command."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the confining program must inherit."""
        ...

    async def listening(self) -> socket.socket:
        """The socket, when it is made; to be closed by the caller. Raises OSError."""
        ...

    def open(self) -> None:
        """Lets the command begin."""
        ...


# --- bubblewrap: it holds the command back until we have been inside -------------------------------------------


@dataclass(frozen=True, slots=True)
class JoinedDoor:
    """For a program that waits on `held` until something can be read. `leader` is its first process, once known."""

    held: int
    release: int
    leader: Callable[[], asyncio.Future[int]]
    user_namespace: bool

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.held,)

    async def listening(self) -> socket.socket:
        async with asyncio.timeout(_MOST_SECONDS):
            if self.user_namespace:
                return await _through_a_program(self.leader())
            return await asyncio.to_thread(_in_a_thread, await self.leader())

    def open(self) -> None:
        os.write(self.release, b".")


@contextmanager
def joined_door(leader: Callable[[], asyncio.Future[int]], *, user_namespace: bool) -> Generator[JoinedDoor]:
    """A door, closed at the end. A command whose artoo is gone begins without a network."""
    held, release = os.pipe()
    try:
        yield JoinedDoor(held, release, leader, user_namespace)
    finally:
        os.close(held)
        os.close(release)


def _in_a_thread(pid: int) -> socket.socket:
    made: list[int | OSError] = []

    def work() -> None:
        try:
            inside.join(pid, user_namespace=False)
            made.append(inside.listen())
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=work, name="artoo-edge")
    thread.start()
    thread.join()
    (found,) = made
    if isinstance(found, OSError):
        raise found
    return socket.socket(fileno=found)


async def _through_a_program(leader: asyncio.Future[int]) -> socket.socket:
    """The program starts while the sandbox is still being built."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_INSIDE), str(theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env={},
            )
        try:
            ours.send(str(await leader).encode())
            found = await received(ours)
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if found is None:
        raise OSError(said.decode("utf-8", "replace").strip().rpartition("\n")[2] or "the program said nothing")
    return found


# --- our own namespaces: the launcher makes the socket itself --------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentDoor:
    """For a program that makes the socket itself and sends it through `theirs`."""

    ours: socket.socket
    theirs: socket.socket

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (self.theirs.fileno(),)

    async def listening(self) -> socket.socket:
        async with asyncio.timeout(_MOST_SECONDS):
            found = await received(self.ours)
        if found is None:
            raise OSError("the launcher sent no socket")
        return found

    def open(self) -> None:
        """The socket was there before the command."""


@contextmanager
def sent_door() -> Generator[SentDoor]:
    """A door, closed at the end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield SentDoor(ours, theirs)


async def received(through: socket.socket) -> socket.socket | None:
    """The socket that comes through a UNIX socket; None when the other end is closed instead."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    through.setblocking(False)
    loop.add_reader(through, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(through)
    _, descriptors, _, _ = socket.recv_fds(through, 1, 1)
    return socket.socket(fileno=descriptors[0]) if descriptors else None
