"""Takes the connections of one command, one after the other judged, and reports each when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import h11

from artoo.contracts.network import NetworkUsed
from artoo.ports.sandbox import Heard
from artoo.world.edge.addresses import usable
from artoo.world.edge.hosts import Address, Destination, Permits, address_of, not_permitted
from artoo.world.edge.passing import Bounds, Budget, Count, Host, forward, tunnel
from artoo.world.edge.visit import Refused, Visit

Resolve = Callable[[Destination], Awaitable[tuple[Address, ...]]]
"""The addresses of a host that is a name, in the order in which they are to be tried. Raises OSError."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Address, int], Awaitable[Streams]]
"""Connects to an address that was judged. Raises OSError."""

_SHOWN = 120
_ENDS = (OSError, EOFError, h11.RemoteProtocolError, h11.LocalProtocolError)
"""How a connection may end that somebody dropped or that speaks no HTTP; nothing to report but its bytes."""


async def system_addresses(goal: Destination) -> tuple[Address, ...]:
    """What this machine's resolver says."""
    found = await asyncio.get_running_loop().getaddrinfo(goal.host, goal.port, type=socket.SOCK_STREAM)
    listed = (address_of(str(entry[4][0])) for entry in found)
    return tuple(dict.fromkeys(address for address in listed if address is not None))


async def connected_to(address: Address, port: int) -> Streams:
    """A TCP connection. No name is looked up."""
    return await asyncio.open_connection(str(address), port)


class Edge:
    """The edge of one command. `permits`: where it may connect to; `heard` is told of every connection."""

    def __init__(
        self,
        permits: Permits,
        heard: Heard,
        resolve: Resolve = system_addresses,
        connect: Connect = connected_to,
        bounds: Bounds | None = None,
    ) -> None:
        self._permits = permits
        self._heard = heard
        self._resolve = resolve
        self._connect = connect
        self._bounds = bounds or Bounds()
        self._budget = Budget(self._bounds.total_bytes)

    async def serve(self, listening: socket.socket) -> None:
        """Serves until it is cancelled; then no connection is left and all have been reported."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        places = asyncio.Semaphore(self._bounds.open_connections)
        async with asyncio.TaskGroup() as group:
            for _ in range(self._bounds.connections):
                await places.acquire()
                accepted, _address = await loop.sock_accept(listening)
                one = group.create_task(self._attend(accepted))
                one.add_done_callback(lambda _: places.release())
        listening.close()

    async def _attend(self, accepted: socket.socket) -> None:
        """One connection, from its first byte to its report."""
        reader, writer = await asyncio.open_connection(sock=accepted)
        visit, count = Visit(reader, writer), Count(self._budget)
        try:
            with self._reported(count) as said:
                try:
                    await self._pass(visit, count, said)
                except Refused as refusal:
                    with contextlib.suppress(*_ENDS):
                        await visit.refuse(refusal)
                    raise
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    @contextmanager
    def _reported(self, count: Count) -> Generator[list[Destination]]:
        """Reports the connection however it ends, a cancellation included. The list takes its goal."""
        said: list[Destination] = []
        refused: str | None = None
        try:
            yield said
        except Refused as refusal:
            refused = refusal.reason
        except _ENDS:
            pass
        except ExceptionGroup as group:
            refusals, rest = group.split(Refused)
            _, other = rest.split(_ENDS) if rest is not None else (None, None)
            if other is not None:
                raise
            refused = _first_reason(refusals)
        finally:
            if said or refused is not None:
                goal = said[0] if said else Destination("", 0)
                self._heard(
                    NetworkUsed(
                        host=goal.host, port=goal.port, bytes_out=count.out, bytes_in=count.into, refused=refused
                    )
                )

    async def _pass(self, visit: Visit, count: Count, said: list[Destination]) -> None:
        """Reads what is wanted, judges it, connects to an address that was judged too, and lets it pass."""
        try:
            async with asyncio.timeout(self._bounds.head_seconds):
                asked = await visit.asked()
        except TimeoutError as error:
            raise Refused("its request did not come in time", 408) from error
        said.append(asked.goal)
        if not self._permits.covers(asked.goal):
            raise Refused(not_permitted(asked.goal))
        reader, writer = await self._connected(asked.goal)
        host = Host(reader, writer, count)
        try:
            async with asyncio.timeout(self._bounds.idle_seconds) as limit:
                now = asyncio.get_running_loop().time
                count.moved = lambda: limit.reschedule(now() + self._bounds.idle_seconds)
                if asked.tunnel:
                    await tunnel(visit, asked, host, self._permits, self._bounds)
                else:
                    await forward(visit, asked, host)
        except TimeoutError as error:
            raise Refused(f"nothing moved for {self._bounds.idle_seconds:g} s", 504) from error
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connected(self, goal: Destination) -> Streams:
        """Connects to the first address that answers. What was judged is what is connected to: no name is asked for
        twice."""
        try:
            async with asyncio.timeout(self._bounds.connect_seconds):
                named = (goal.address,) if goal.address is not None else await self._resolve(goal)
                addresses, problem = usable(named, goal, self._permits)
                if not addresses:
                    raise Refused(f"{goal} {f'has only {problem}' if problem else 'has no address'}")
                return await self._first_that_answers(addresses, goal.port)
        except TimeoutError as error:
            raise Refused(f"{goal} did not answer in time", 504) from error
        except OSError as error:
            raise Refused(f"{goal} cannot be reached: {str(error)[:_SHOWN]}", 502) from error

    async def _first_that_answers(self, addresses: list[Address], port: int) -> Streams:
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return await self._connect(address, port)
        return await self._connect(addresses[-1], port)


def _first_reason(group: BaseExceptionGroup[Refused] | None) -> str | None:
    while group is not None:
        first = group.exceptions[0]
        if isinstance(first, Refused):
            return first.reason
        group = first
    return None
