"""Gives a command its network: a proxy of its own for as long as it runs, or variables that say there is none.

Ordinary programs (pip, uv, npm, git over http, curl, wget, Python's and Go's clients) find a proxy in the
environment. A command without a network finds one too, whose name cannot exist and says what to do: a program that
tries to reach something then names it in its own error message, where "temporary failure in name resolution" would
send a model looking for a mistake elsewhere. That needs no process and no socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command
from artoo.sandbox.network.allowlist import Permits, plain_host

NO_NETWORK = "commands-have-no-network.call-again-with-hosts.invalid"
"""The name of a proxy that does not exist (RFC 6761: `invalid` is never resolved)."""

_NAMES = ("http_proxy", "https_proxy", "all_proxy")
_LOCAL = ("localhost", "127.0.0.1", "::1")
"""Reached without the proxy: a server that the task itself started, in the sandbox's own network."""

Listen = Callable[[], Awaitable[socket.socket]]
"""Returns a socket that listens on a fresh port of 127.0.0.1 in the sandbox's network. Raises OSError.

A socket stays in the network that it was made in, whichever process holds it: nothing of artoo runs inside.
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


def no_network_environment() -> dict[str, str]:
    """Return the variables for a command that may reach nothing outside the sandbox."""
    return {**_proxies(f"http://{NO_NETWORK}:9", _LOCAL), "PIP_RETRIES": "1", "npm_config_fetch_retries": "0"}


def proxy_environment(permits: Permits, port: int) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on `port`.

    A local name that a permission covers leads to the proxy, because it means the user's machine.
    """
    proxy = f"http://127.0.0.1:{port}"
    own = tuple(name for name in _LOCAL if not any(one.covers_host(plain_host(name)) for one in permits.listed))
    return {**_proxies(proxy, own), "PIP_PROXY": proxy, "NODE_USE_ENV_PROXY": "1"}


def _proxies(proxy: str, not_for: tuple[str, ...]) -> dict[str, str]:
    variables = dict.fromkeys(_NAMES, proxy) | {"no_proxy": ",".join(not_for)}
    return variables | {name.upper(): value for name, value in variables.items()}
