"""Serves the connections of one command, each judged by itself, and reports each when it has ended.

_serve_connection   accept, report at the end whatever happens
└─ _relay           read the request, check the permission
   ├─ _connected    resolve the name once, check the addresses, connect to one that was checked
   └─ relay.tunnel (CONNECT) or relay.forward (plain HTTP)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import h11

from artoo.contracts.network import NetworkUsed
from artoo.ports.workspace import OnConnection
from artoo.sandbox.network.address_policy import usable
from artoo.sandbox.network.allowlist import Address, Destination, Permits, address_of, not_permitted
from artoo.sandbox.network.connect_request import ClientConnection, Refused
from artoo.sandbox.network.relay import ByteCounter, ProxyLimits, Upstream, forward, tunnel

Resolve = Callable[[Destination], Awaitable[tuple[Address, ...]]]
"""Returns the addresses of a host that is a name, in the order in which they are to be tried. Raises OSError."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Address, int], Awaitable[Streams]]
"""Connects to an address that was checked. Raises OSError."""

OnDenied = Callable[[str], object]
"""Receives a destination (`HOST:PORT`) that the command asked for and may not reach."""

_LONGEST_ERROR = 120
_ENDS = (OSError, EOFError, h11.RemoteProtocolError, h11.LocalProtocolError)
"""How a connection may end that a side dropped or that speaks no HTTP: only its bytes are reported."""


async def system_addresses(goal: Destination) -> tuple[Address, ...]:
    """Resolve a name with this machine's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(goal.host, goal.port, type=socket.SOCK_STREAM)
    listed = (address_of(str(entry[4][0])) for entry in found)
    return tuple(dict.fromkeys(address for address in listed if address is not None))


async def connected_to(address: Address, port: int) -> Streams:
    """Make a TCP connection. No name is looked up."""
    return await asyncio.open_connection(str(address), port)


def _ignore_denied(_: str) -> None:
    """Ignore a denied destination."""


class Proxy:
    """The egress proxy of one command, which may connect to what `permits` covers."""

    def __init__(
        self,
        permits: Permits,
        on_connection: OnConnection,
        *,
        on_denied: OnDenied = _ignore_denied,
        resolve: Resolve = system_addresses,
        connect: Connect = connected_to,
        limits: ProxyLimits | None = None,
    ) -> None:
        self._permits = permits
        self._on_connection = on_connection
        self._on_denied = on_denied
        self._resolve = resolve
        self._connect = connect
        self._limits = limits or ProxyLimits()

    async def serve(self, listening: socket.socket) -> None:
        """Serve until cancelled; then no connection is left and all have been reported. Closes the socket."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        free_places = asyncio.Semaphore(self._limits.open_connections)
        async with asyncio.TaskGroup() as group:
            with listening:  # closed first: nothing may connect while the connections are being ended
                while True:
                    await free_places.acquire()
                    accepted, _address = await loop.sock_accept(listening)
                    one = group.create_task(self._serve_connection(accepted))
                    one.add_done_callback(lambda _: free_places.release())

    async def _serve_connection(self, accepted: socket.socket) -> None:
        """Serve one connection, from its first byte to its report."""
        reader, writer = await asyncio.open_connection(sock=accepted)
        client, counter = ClientConnection(reader, writer), ByteCounter()
        goals: list[Destination] = []
        refusal: Refused | None = None
        try:
            await self._relay(client, counter, goals)
        except Refused as error:
            refusal = error
            with contextlib.suppress(*_ENDS):
                await client.refuse(refusal)
        except _ENDS:
            pass
        finally:  # also when the command has ended, which cancels this
            if goals or refusal is not None:
                self._report(goals[0] if goals else None, counter, refusal)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _report(self, goal: Destination | None, counter: ByteCounter, refusal: Refused | None) -> None:
        if goal is not None and refusal is not None and refusal.is_denial:
            self._on_denied(str(goal))
        self._on_connection(
            NetworkUsed(
                host=goal.host if goal is not None else "",
                port=goal.port if goal is not None else 0,
                bytes_out=counter.sent,
                bytes_in=counter.received,
                refused=None if refusal is None else refusal.reason,
            )
        )

    async def _relay(self, client: ClientConnection, counter: ByteCounter, goals: list[Destination]) -> None:
        """Read the request, check it, connect to an address that was checked too, and let both sides talk.

        `goals` takes its destination.
        """
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                request = await client.request()
        except TimeoutError as error:
            raise Refused("its request did not come in time", 408) from error
        goals.append(request.goal)
        if not self._permits.covers(request.goal):
            raise Refused(not_permitted(request.goal))
        reader, writer = await self._connected(request.goal)
        upstream = Upstream(reader, writer, counter)
        try:
            async with asyncio.timeout(self._limits.idle_seconds) as limit:
                now = asyncio.get_running_loop().time
                counter.on_bytes = lambda: limit.reschedule(now() + self._limits.idle_seconds)
                if request.is_tunnel:
                    await tunnel(client, request, upstream, self._permits, self._limits)
                else:
                    await forward(client, request, upstream)
        except ExceptionGroup as group:  # each direction is a task of its own: the one that failed first decides
            raise group.exceptions[0] from None
        except TimeoutError as error:
            raise Refused(f"nothing moved for {self._limits.idle_seconds:g} s", 504) from error
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connected(self, goal: Destination) -> Streams:
        """Connect to the first address that answers.

        The name is resolved once, and the connection goes to an address that was checked: a second answer of the
        resolver (DNS rebinding) changes nothing.
        """
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                resolved = (goal.address,) if goal.address is not None else await self._resolve(goal)
                addresses, problem = usable(resolved, goal, self._permits)
                if not addresses:
                    raise Refused(f"{goal} {f'has only {problem}' if problem else 'has no address'}")
                return await self._first_that_answers(addresses, goal.port)
        except TimeoutError as error:
            raise Refused(f"{goal} did not answer in time", 504) from error
        except OSError as error:
            raise Refused(f"{goal} cannot be reached: {str(error)[:_LONGEST_ERROR]}", 502) from error

    async def _first_that_answers(self, addresses: list[Address], port: int) -> Streams:
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return await self._connect(address, port)
        return await self._connect(addresses[-1], port)
