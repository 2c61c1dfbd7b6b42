"""Gives a command with hosts its network: a proxy of its own for as long as it runs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command
from artoo.sandbox.network.allowlist import Permits
from artoo.sandbox.network.proxy_env import proxy_environment

Listen = Callable[[], Awaitable[socket.socket]]
"""Returns a socket that listens on a fresh port of 127.0.0.1 in the sandbox's network. Raises OSError.

A socket stays in the network that it was made in, whoever holds it: nothing of artoo runs inside.
"""


@dataclass(slots=True)
class CommandNetwork:
    """The variables that tell a command about its network, and what it tried to reach and may not.

    `denied_hosts`: destinations (`HOST:PORT`), each once, in the order of the attempts.
    """

    environment: Mapping[str, str]
    denied_hosts: tuple[str, ...] = ()

    def deny(self, destination: str) -> None:
        """Remember a destination that was refused."""
        if destination not in self.denied_hosts:
            self.denied_hosts += (destination,)


@asynccontextmanager
async def proxied(command: Command, listen: Listen) -> AsyncGenerator[CommandNetwork]:
    """Serve a command's proxy until the block is left; all its connections have been reported then.

    To be entered before the command starts and left when it has ended. Raises SandboxError when a host cannot be
    read or the socket cannot be made.
    """
    from artoo.sandbox.network.proxy import Proxy  # with h11: only commands that reach the network pay for it

    permits = Permits.given(command.hosts)
    try:
        listening = await listen()
    except OSError as error:
        raise SandboxError(f"the egress proxy cannot be set up, so nothing was run: {error}") from error
    with listening:
        network = CommandNetwork(proxy_environment(permits, listening.getsockname()[1]))
        proxy = Proxy(permits, command.on_connection, on_denied=network.deny)
        # No task group: it would wrap what the block raises, and has to be left by the task that entered it.
        serving = asyncio.create_task(proxy.serve(listening))
        try:
            yield network
        finally:
            serving.cancel()
            await asyncio.wait({serving})
