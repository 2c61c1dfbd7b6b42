"""Moves bytes between a command and a permitted host: counted, bounded, and only what was permitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import h11

from artoo.sandbox.network import tls_client_hello
from artoo.sandbox.network.allowlist import NotAHost, Permits, plain_host
from artoo.sandbox.network.connect_request import ClientConnection, ProxyRequest, Refused

_CHUNK = 64 * 1024
_ALERT = bytes((21, 3, 3, 0, 2, 2, 49))
"""TLS's "access denied": the only refusal that a client understands which waits for a certificate."""

_CONNECTION = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"alt-svc"})
"""Headers of an answer that concern the connection to the host only."""


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Limits of one command's proxy. Times in seconds."""

    open_connections: int = 64
    head_seconds: float = 10.0
    connect_seconds: float = 15.0
    idle_seconds: float = 120.0


@dataclass(slots=True)
class ByteCounter:
    """Counts the bytes of one connection on the host's side. `on_bytes` is called whenever some pass."""

    sent: int = 0
    received: int = 0
    on_bytes: Callable[[], None] = field(default=lambda: None)

    def count(self, data: bytes, *, sent: bool) -> None:
        """Count bytes before they pass."""
        if sent:
            self.sent += len(data)
        else:
            self.received += len(data)
        self.on_bytes()


@dataclass(frozen=True, slots=True)
class Upstream:
    """The connection to the host."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    counter: ByteCounter

    async def send(self, data: bytes) -> None:
        """Send to the host."""
        self.counter.count(data, sent=True)
        self.writer.write(data)
        await self.writer.drain()

    async def read(self) -> bytes:
        """Read from the host; empty at the end."""
        data = await self.reader.read(_CHUNK)
        self.counter.count(data, sent=False)
        return data


# --- tunnels ----------------------------------------------------------------------------------------------------


async def tunnel(
    client: ClientConnection, request: ProxyRequest, upstream: Upstream, permits: Permits, limits: ProxyLimits
) -> None:
    """Relay both directions, once the command has said in clear that it speaks to the permitted host."""
    ahead = await client.accept()
    try:
        async with asyncio.timeout(limits.head_seconds):
            ahead = await _checked_start(client, request, ahead, permits)
    except TimeoutError as error:
        raise Refused("it said nothing after CONNECT", 408) from error
    except Refused:
        client.writer.write(_ALERT)
        raise
    await upstream.send(ahead)
    async with asyncio.TaskGroup() as group:
        group.create_task(_relay_out(client.reader, upstream))
        group.create_task(_relay_in(upstream, client.writer))


async def _checked_start(client: ClientConnection, request: ProxyRequest, ahead: bytes, permits: Permits) -> bytes:
    """Return what the command sent first, once it was checked.

    TLS must name the host; another protocol needs a permission that names its port.
    """
    while True:
        try:
            found = tls_client_hello.read_client_hello(ahead) if ahead else None
        except tls_client_hello.NotAClientHello as error:
            if permits.allows_any_protocol(request.goal) and ahead[0] != tls_client_hello.HANDSHAKE:
                return ahead
            raise Refused(f"{error}, so its host cannot be told") from error
        if found is not None:
            _require_name(found, request)
            return ahead
        more = await client.reader.read(_CHUNK)
        if not more:
            raise Refused("it said nothing after CONNECT", 400)
        ahead += more


def _require_name(found: tls_client_hello.ClientHello, request: ProxyRequest) -> None:
    if found.is_encrypted:
        raise Refused("its TLS hello hides the host that it means (encrypted client hello)")
    if request.goal.address is not None:
        if found.name:
            raise Refused(f"its TLS hello says {found.name[:200]!r}, CONNECT {request.goal}")
        return
    if not found.name:
        raise Refused("its TLS hello names no host")
    try:
        same = plain_host(found.name) == request.goal.host
    except NotAHost:
        same = False
    if not same:
        raise Refused(f"its TLS hello says {found.name[:200]!r}, CONNECT {request.goal}")


async def _relay_out(reader: asyncio.StreamReader, upstream: Upstream) -> None:
    while data := await reader.read(_CHUNK):
        await upstream.send(data)
    if upstream.writer.can_write_eof():
        upstream.writer.write_eof()


async def _relay_in(upstream: Upstream, writer: asyncio.StreamWriter) -> None:
    while data := await upstream.read():
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


# --- plain HTTP -------------------------------------------------------------------------------------------------


async def forward(client: ClientConnection, request: ProxyRequest, upstream: Upstream) -> None:
    """Send one request to the host and its answer back; then the connection ends.

    Both are parsed and written again, so that the proxy and the host cannot read the same bytes in two ways
    (request smuggling).
    """
    http = h11.Connection(h11.CLIENT)
    headers = [(b"Host", _host_header(request)), *request.headers, (b"Connection", b"close")]
    if request.chunked:
        headers.append((b"Transfer-Encoding", b"chunked"))
    elif request.length is not None:
        headers.append((b"Content-Length", str(request.length).encode()))
    await _send(upstream, http, h11.Request(method=request.method, target=request.path, headers=headers))
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(_send_body(client, upstream, http))
        await _send_answer(client, upstream, http)
        sending.cancel()


async def _send(upstream: Upstream, http: h11.Connection, event: h11.Event) -> None:
    data = http.send(event)
    if data:
        await upstream.send(data)


async def _send_body(client: ClientConnection, upstream: Upstream, http: h11.Connection) -> None:
    try:
        while not isinstance(event := await client.next_event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return
            await _send(upstream, http, h11.Data(data=bytes(event.data)))
        await _send(upstream, http, h11.EndOfMessage())
    except ConnectionError:  # a host that has answered may read no further: its answer says why
        return


async def _send_answer(client: ClientConnection, upstream: Upstream, http: h11.Connection) -> None:
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await upstream.read())
        elif isinstance(event, h11.Response):
            kept = [(name, value) for name, value in event.headers if name not in _CONNECTION]
            kept.append((b"Connection", b"close"))
            await client.send(h11.Response(status_code=event.status_code, headers=kept, reason=event.reason))
        elif isinstance(event, h11.Data):
            await client.send(h11.Data(data=bytes(event.data)))
        elif isinstance(event, h11.EndOfMessage):
            await client.send(h11.EndOfMessage())
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise Refused("the host ended the connection without an answer", 502)


def _host_header(request: ProxyRequest) -> bytes:
    text = str(request.goal)
    return (text.removesuffix(":80") if request.goal.port == 80 else text).encode("ascii")
