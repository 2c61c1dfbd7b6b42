"""What passes between a command and a host that it was allowed: counted, bounded, and only what was permitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import h11

from artoo.world.edge import hello
from artoo.world.edge.hosts import NotAHost, Permits, plain_host
from artoo.world.edge.visit import Asked, Refused, Visit

_CHUNK = 64 * 1024
_ALERT = bytes((21, 3, 3, 0, 2, 2, 49))
"""TLS's "access denied": the only way to say no to a client that waits for a certificate."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one command's edge. Times in seconds, `total_bytes` over all connections and both directions."""

    open_connections: int = 64
    connections: int = 4_096
    head_seconds: float = 10.0
    connect_seconds: float = 15.0
    idle_seconds: float = 120.0
    total_bytes: int = 8 << 30


@dataclass(slots=True)
class Budget:
    """Bytes that may still pass at this edge."""

    left: int


@dataclass(slots=True)
class Count:
    """Bytes of one connection, as they passed the host's side. `moved` is called whenever something passes."""

    budget: Budget
    out: int = 0
    into: int = 0
    moved: Callable[[], None] = field(default=lambda: None)

    def passes(self, data: bytes, *, out: bool) -> None:
        """Counts before it passes. Raises Refused when the command has used up its bytes."""
        if len(data) > self.budget.left:
            raise Refused("the command has moved more bytes than one may")
        self.budget.left -= len(data)
        if out:
            self.out += len(data)
        else:
            self.into += len(data)
        self.moved()


@dataclass(frozen=True, slots=True)
class Host:
    """The connection to the host."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    count: Count

    async def send(self, data: bytes) -> None:
        """Sends to the host."""
        self.count.passes(data, out=True)
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> bytes:
        """Reads from the host; empty at the end."""
        data = await self.reader.read(_CHUNK)
        self.count.passes(data, out=False)
        return data


# --- tunnels ----------------------------------------------------------------------------------------------------


async def tunnel(visit: Visit, asked: Asked, host: Host, permits: Permits, bounds: Bounds) -> None:
    """Lets a command speak for itself, once it has said in clear that it speaks to the permitted host."""
    ahead = await visit.accept()
    try:
        async with asyncio.timeout(bounds.head_seconds):
            ahead = await _judged(visit, asked, ahead, permits)
    except TimeoutError as error:
        raise Refused("it said nothing after CONNECT") from error
    except Refused:
        visit.writer.write(_ALERT)
        raise
    await host.send(ahead)
    async with asyncio.TaskGroup() as group:
        group.create_task(_outwards(visit.reader, host))
        group.create_task(_inwards(host, visit.writer))


async def _judged(visit: Visit, asked: Asked, ahead: bytes, permits: Permits) -> bytes:
    """What the command sent first, when it may. TLS must name the host; anything else needs a permitted port."""
    while True:
        try:
            found = hello.read_hello(ahead) if ahead else None
        except hello.NotAHello as error:
            if permits.speaks_anything(asked.goal) and ahead[0] != hello.HANDSHAKE:
                return ahead
            raise Refused(f"{error}, so its host cannot be told") from error
        if found is not None:
            _require_name(found, asked)
            return ahead
        more = await visit.reader.read(_CHUNK)
        if not more:
            raise Refused("it said nothing after CONNECT")
        ahead += more


def _require_name(found: hello.Hello, asked: Asked) -> None:
    if found.hides:
        raise Refused("its TLS hello hides the host that it means (encrypted client hello)")
    if asked.goal.address is not None:
        if found.name:
            raise Refused(f"its TLS hello says {found.name[:200]!r}, CONNECT {asked.goal}")
        return
    if not found.name:
        raise Refused("its TLS hello names no host")
    try:
        same = plain_host(found.name) == asked.goal.host
    except NotAHost:
        same = False
    if not same:
        raise Refused(f"its TLS hello says {found.name[:200]!r}, CONNECT {asked.goal}")


async def _outwards(reader: asyncio.StreamReader, host: Host) -> None:
    while data := await reader.read(_CHUNK):
        await host.send(data)
    if host.writer.can_write_eof():
        host.writer.write_eof()


async def _inwards(host: Host, writer: asyncio.StreamWriter) -> None:
    while data := await host.read():
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


# --- plain HTTP -------------------------------------------------------------------------------------------------


async def forward(visit: Visit, asked: Asked, host: Host) -> None:
    """Sends one request in the edge's own words and its answer back; then the connection ends.

    Both sides are parsed and written anew, so that nothing is read in one way here and in another there.
    """
    http = h11.Connection(h11.CLIENT)
    headers = [(b"Host", _host_header(asked)), *asked.headers, (b"Connection", b"close")]
    if asked.chunked:
        headers.append((b"Transfer-Encoding", b"chunked"))
    elif asked.length is not None:
        headers.append((b"Content-Length", str(asked.length).encode()))
    await _say(host, http, h11.Request(method=asked.method, target=asked.path, headers=headers))
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(_body(visit, host, http))
        await _answer(visit, host, http)
        sending.cancel()


async def _say(host: Host, http: h11.Connection, event: h11.Event) -> None:
    data = http.send(event)
    if data:
        await host.send(data)


async def _body(visit: Visit, host: Host, http: h11.Connection) -> None:
    try:
        while not isinstance(event := await visit.next_event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return
            await _say(host, http, h11.Data(data=bytes(event.data)))
        await _say(host, http, h11.EndOfMessage())
    except ConnectionError:  # a host that has answered may read no further: the answer says what it thinks
        return


async def _answer(visit: Visit, host: Host, http: h11.Connection) -> None:
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await host.read())
        elif isinstance(event, h11.Response):
            kept = [(name, value) for name, value in event.headers if name not in _CONNECTION]
            kept.append((b"Connection", b"close"))
            await visit.send(h11.Response(status_code=event.status_code, headers=kept, reason=event.reason))
        elif isinstance(event, h11.Data):
            await visit.send(h11.Data(data=bytes(event.data)))
        elif isinstance(event, h11.EndOfMessage):
            await visit.send(h11.EndOfMessage())
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise Refused("the host ended the connection without an answer", 502)


_CONNECTION = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"alt-svc"})


def _host_header(asked: Asked) -> bytes:
    text = str(asked.goal)
    return (text.removesuffix(":80") if asked.goal.port == 80 else text).encode("ascii")
