"""Start a proxy for each command, and set its variables (`http_proxy` and others), or those of no network.

Ordinary programs (pip, uv, npm, git over http, curl, wget, and clients in Python and Go) take the proxy from the
environment. A command without hosts has a proxy too, which refuses everything. So each attempt is a fact of the
call, even if the command hides its failure (`pip install x | tail -3` ends with 0).

Where no proxy can be served, the variables contain a proxy name that cannot exist and that tells what to do. A
program that tries to connect then shows this name in its error message. Otherwise "temporary failure in name
resolution" would make a model search for the wrong cause.
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
_FEW_TRIES = {"PIP_RETRIES": "1", "npm_config_fetch_retries": "0"}
"""A refusal stays a refusal, so programs need not try again for minutes."""
_LOCAL = ("localhost", "127.0.0.1", "::1")
"""Hosts that are reached without the proxy, for servers that the task itself started in the sandbox's network."""

Listen = Callable[[], Awaitable[socket.socket]]
"""Returns a socket that listens on an unused port of 127.0.0.1 in the sandbox's network. Raises OSError.

A socket stays in the network in which it was made, even if a process outside uses it. Therefore the proxy itself
runs outside of the sandbox.
"""


@dataclass(slots=True)
class CommandNetwork:
    """The environment variables about a command's network, and the destinations that were denied to the command.

    `denied_hosts`: destinations (`HOST:PORT`) without duplicates, in the order of the attempts.
    """

    environment: Mapping[str, str]
    denied_hosts: tuple[str, ...] = ()

    def deny(self, destination: str) -> None:
        """Add a denied destination to `denied_hosts`."""
        if destination not in self.denied_hosts:
            self.denied_hosts += (destination,)


@asynccontextmanager
async def proxied(command: Command, listen: Listen) -> AsyncGenerator[CommandNetwork]:
    """Run the proxy of a command until the context ends. When the context has ended, all connections have been
    reported.

    Enter the context before the command starts, and exit it when the command has ended. Raises SandboxError if a
    host cannot be parsed or the socket cannot be made.
    """
    permits = Permits.given(command.hosts)
    try:
        listening = await listen()
    except OSError as error:
        raise SandboxError(f"the egress proxy cannot be set up, so nothing was run: {error}") from error
    with listening:
        network = CommandNetwork(proxy_environment(permits, listening.getsockname()[1]))
        # A task group is not used here. It would wrap exceptions of the block, and must be exited by the task that
        # entered it.
        serving = asyncio.create_task(_serve(listening, permits, command, network))
        try:
            yield network
        finally:
            serving.cancel()
            await asyncio.wait({serving})


async def _serve(listening: socket.socket, permits: Permits, command: Command, network: CommandNetwork) -> None:
    """Wait for the first connection, and then run the proxy. Most commands never connect."""
    loop, connected = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listening, connected.set)
    try:
        await connected.wait()
    finally:
        loop.remove_reader(listening)
    from artoo.sandbox.network.proxy import Proxy  # imports h11, which takes time

    await Proxy(permits, command.on_connection, on_denied=network.deny).serve(listening)


def no_network_environment() -> dict[str, str]:
    """Return the variables for a command that may not connect to any host, where no proxy can be served."""
    return {**_proxies(f"http://{NO_NETWORK}:9", _LOCAL), **_FEW_TRIES}


def proxy_environment(permits: Permits, port: int) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on `port`.

    A local name that a permission covers is reached through the proxy, because it means the user's machine then.
    """
    proxy = f"http://127.0.0.1:{port}"
    own = tuple(name for name in _LOCAL if not any(one.covers_host(plain_host(name)) for one in permits.listed))
    known = {**_proxies(proxy, own), "PIP_PROXY": proxy, "NODE_USE_ENV_PROXY": "1"}
    return known if permits.listed else {**known, **_FEW_TRIES}


def _proxies(proxy: str, not_for: tuple[str, ...]) -> dict[str, str]:
    variables = dict.fromkeys(_NAMES, proxy) | {"no_proxy": ",".join(not_for)}
    return variables | {name.upper(): value for name, value in variables.items()}
