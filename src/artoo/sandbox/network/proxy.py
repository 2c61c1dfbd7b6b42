"""The egress proxy of one command, with connection limit, connect and idle timeouts, and refusals.

Each connection is checked separately, and is reported when it has ended.

_serve_connection   accept, and report at the end even after an error
└─ _relay           read the request, check the permission
   ├─ _connected    resolve the name once, check the addresses, connect to one that was checked
   └─ _tunnel (CONNECT) or _forward (plain HTTP)
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import h11

from artoo.contracts.events import NetworkUsed
from artoo.ports.workspace import OnConnection
from artoo.sandbox.network import tls_client_hello
from artoo.sandbox.network.allowlist import (
    Address,
    Destination,
    NotAHost,
    Permits,
    address_of,
    destination,
    not_permitted,
    plain_host,
    usable,
)

Resolve = Callable[[Destination], Awaitable[tuple[Address, ...]]]
"""Resolves a host name. Returns its addresses in the order in which they must be tried. Raises OSError."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Address, int], Awaitable[Streams]]
"""Connects to an address that was checked. Raises OSError."""

OnDenied = Callable[[str], object]
"""Called with the destination (`HOST:PORT`) of each connection that was denied."""

Part = h11.Request | h11.Data | h11.EndOfMessage | h11.ConnectionClosed
"""A part of a command's request."""

_AUTHORITY = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>[/?][^#]*)?", re.IGNORECASE)
_LONGEST_HEAD, _HEAD_CHUNK, _CHUNK = 32 * 1024, 4096, 64 * 1024
_LONGEST_ERROR = 120
_DENIED = 403
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_HOP_BY_HOP = _FRAMING | frozenset(
    b"connection proxy-connection keep-alive te trailer upgrade http2-settings proxy-authorization"
    b" proxy-authenticate host expect".split()
)
"""Headers that apply only to the connection and not to the request, and headers that the proxy writes itself."""
_OF_THE_HOSTS_CONNECTION = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"alt-svc"})
"""Headers of a response that apply only to the connection with the host."""
_ALERT = bytes((21, 3, 3, 0, 2, 2, 49))
"""The TLS alert "access denied", which is the only refusal that a client understands while it waits for a
certificate."""
_ENDS = (OSError, EOFError, h11.RemoteProtocolError, h11.LocalProtocolError)
"""The errors that mean that one side closed a connection, or that the connection is not HTTP. For such a
connection, only the byte counts are reported."""


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Limits of one command's proxy. Times in seconds."""

    open_connections: int = 64
    head_seconds: float = 10.0
    connect_seconds: float = 15.0
    idle_seconds: float = 120.0


class Refused(Exception):
    """Raised to refuse a connection. `status`: the HTTP status; 403 means that the command may not reach the
    host."""

    def __init__(self, reason: str, status: int = _DENIED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


async def system_addresses(goal: Destination) -> tuple[Address, ...]:
    """Resolve a name with this machine's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(goal.host, goal.port, type=socket.SOCK_STREAM)
    listed = (address_of(str(entry[4][0])) for entry in found)
    return tuple(dict.fromkeys(address for address in listed if address is not None))


async def connected_to(address: Address, port: int) -> Streams:
    """Make a TCP connection. The address is used as it is, and no name is looked up."""
    return await asyncio.open_connection(str(address), port)


class Proxy:
    """The egress proxy of one command, which may connect only to the hosts that `permits` covers."""

    def __init__(
        self,
        permits: Permits,
        on_connection: OnConnection,
        *,
        on_denied: OnDenied = lambda _: None,
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
        """Serve until cancelled. Then close the socket, end all connections and report them."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        free_places = asyncio.Semaphore(self._limits.open_connections)
        async with asyncio.TaskGroup() as group:
            # the socket is closed first, so that nothing can connect while the connections are being ended
            with listening:
                while True:
                    await free_places.acquire()
                    accepted, _address = await loop.sock_accept(listening)
                    one = group.create_task(self._serve_connection(accepted))
                    one.add_done_callback(lambda _: free_places.release())

    async def _serve_connection(self, accepted: socket.socket) -> None:
        """Serve one connection, from its first byte to its report."""
        client = _Connection(*await asyncio.open_connection(sock=accepted))
        refusal: Refused | None = None
        try:
            await self._relay(client)
        except Refused as error:
            refusal = error
            with contextlib.suppress(*_ENDS):
                await client.refuse(refusal)
        except _ENDS:
            pass
        finally:  # also after a cancellation, which happens when the command has ended
            if client.goal is not None or refusal is not None:
                self._report(client, refusal)
            await _closed(client.writer)

    def _report(self, client: _Connection, refusal: Refused | None) -> None:
        goal = client.goal
        if goal is not None and refusal is not None and refusal.status == _DENIED:
            self._on_denied(str(goal))
        self._on_connection(
            NetworkUsed(
                host=goal.host if goal is not None else "",
                port=goal.port if goal is not None else 0,
                bytes_out=client.sent,
                bytes_in=client.received,
                refused=None if refusal is None else refusal.reason,
            )
        )

    async def _relay(self, client: _Connection) -> None:
        """Read and check the request of a client, connect to a checked address, and relay data in both
        directions."""
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                client.goal, request = await client.request()
        except TimeoutError as error:
            raise Refused("its request did not come in time", 408) from error
        if not self._permits.covers(client.goal):
            raise Refused(not_permitted(client.goal))
        host = await self._connected(client.goal)
        try:
            async with asyncio.timeout(self._limits.idle_seconds) as limit:
                now = asyncio.get_running_loop().time
                client.on_bytes = lambda: limit.reschedule(now() + self._limits.idle_seconds)
                if request is None:
                    await self._tunnel(client, client.goal, host)
                else:
                    await _forward(client, request, host)
        except ExceptionGroup as group:  # each direction is a separate task, and the first failure is reported
            raise group.exceptions[0] from None
        except TimeoutError as error:
            raise Refused(f"nothing moved for {self._limits.idle_seconds:g} s", 504) from error
        finally:
            await _closed(host[1])

    async def _connected(self, goal: Destination) -> Streams:
        """Connect to the first address that answers.

        The name is resolved only once, and the connection goes to an address that was checked. A different later
        answer of the resolver (DNS rebinding) therefore has no effect.
        """
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                # The client does not resolve the name itself, so there is no second lookup with another result.
                resolved = (goal.address,) if goal.address is not None else await self._resolve(goal)
                addresses, problem = usable(resolved, goal, self._permits)
                if not addresses:
                    raise Refused(f"{goal} {f'has only {problem}' if problem else 'has no address'}")
                for address in addresses[:-1]:
                    with contextlib.suppress(OSError):
                        return await self._connect(address, goal.port)
                return await self._connect(addresses[-1], goal.port)
        except TimeoutError as error:
            raise Refused(f"{goal} did not answer in time", 504) from error
        except OSError as error:
            raise Refused(f"{goal} cannot be reached: {str(error)[:_LONGEST_ERROR]}", 502) from error

    async def _tunnel(self, client: _Connection, goal: Destination, host: Streams) -> None:
        """Relay both directions of a tunnel. Before that, the command's first bytes are checked against the
        permitted host."""
        ahead = await client.accept()
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                ahead = await self._checked_start(client, goal, ahead)
        except TimeoutError as error:
            raise Refused("it said nothing after CONNECT", 408) from error
        except Refused:
            client.writer.write(_ALERT)
            raise
        await client.send(ahead, host[1])
        async with asyncio.TaskGroup() as group:
            group.create_task(
                _pump(lambda: client.reader.read(_CHUNK), lambda data: client.send(data, host[1]), host[1])
            )
            group.create_task(_pump(lambda: client.receive(host[0]), client.write, client.writer))

    async def _checked_start(self, client: _Connection, goal: Destination, ahead: bytes) -> bytes:
        """Read and check the first bytes of the command, and return them.

        A TLS hello must contain the name of the host. Any other protocol is allowed only if a permission names the
        port.
        """
        while True:
            try:
                found = tls_client_hello.read_client_hello(ahead) if ahead else None
            except tls_client_hello.NotAClientHello as error:
                if self._permits.allows_any_protocol(goal) and ahead[0] != tls_client_hello.HANDSHAKE:
                    return ahead
                raise Refused(f"{error}, so its host cannot be told") from error
            if found is not None:
                _require_name(found, goal)
                return ahead
            more = await client.reader.read(_CHUNK)
            if not more:
                raise Refused("it said nothing after CONNECT", 400)
            ahead += more


class _Connection:
    """The connection that a command has opened to the proxy. `sent` and `received` count the bytes that were
    exchanged with the host.

    `goal`: the requested destination, or None before it is known. `on_bytes` is called whenever data is relayed.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.goal: Destination | None = None
        self.sent = self.received = 0
        self.on_bytes: Callable[[], None] = lambda: None
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)

    async def request(self) -> tuple[Destination, h11.Request | None]:
        """Read the request's head. Returns the destination, and the request to forward (None for a tunnel).

        Raises Refused if the head is ambiguous, and EOFError if the connection ends before it.
        """
        try:
            event = await self.next_event()
        except h11.RemoteProtocolError as error:
            raise Refused(f"this is no request to a proxy: {error}", 400) from error
        match event:
            case h11.Request(method=b"CONNECT"):
                return _destination(event.target.decode("ascii")), None
            case h11.Request():
                return _plain_request(event)
            case _:
                raise EOFError

    async def next_event(self) -> Part | None:
        """Return the next part of the request. Return None while h11 is paused. Raises h11.RemoteProtocolError."""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self.answer(h11.InformationalResponse(status_code=100, headers=[]))
                size = _HEAD_CHUNK if self._http.their_state is h11.IDLE else _CHUNK
                self._http.receive_data(await self.reader.read(size))
            elif event is h11.PAUSED:
                return None
            else:
                return cast(Part, event)

    async def answer(self, event: h11.Event) -> None:
        """Send a part of the answer to the command."""
        data = self._http.send(event)
        if data:
            await self.write(data)

    async def write(self, data: bytes) -> None:
        """Send bytes to the command."""
        self.writer.write(data)
        await self.writer.drain()

    async def accept(self) -> bytes:
        """Accept a tunnel. Return the bytes that the command has already sent through it."""
        await self.answer(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
        return self._http.trailing_data[0]

    async def refuse(self, refusal: Refused) -> None:
        """Answer with the reason for the refusal. The reason is in the status line too, because many clients show
        only that line.

        Nothing is sent if a response has already begun.
        """
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        reason = f"artoo: {refusal.reason}".encode("ascii", "replace")
        body = reason + b"\n"
        headers = [
            ("Content-Type", "text/plain"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        await self.answer(h11.Response(status_code=refusal.status, headers=headers, reason=reason))
        await self.answer(h11.Data(data=body))
        await self.answer(h11.EndOfMessage())

    async def send(self, data: bytes, host: asyncio.StreamWriter) -> None:
        """Send bytes to the host. They are counted before they are sent, so that the count is never too low."""
        self.sent += len(data)
        self.on_bytes()
        host.write(data)
        await host.drain()

    async def receive(self, host: asyncio.StreamReader) -> bytes:
        """Read from the host. Returns no bytes when the host has closed the connection."""
        data = await host.read(_CHUNK)
        self.received += len(data)
        self.on_bytes()
        return data


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait until that is done."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


# --- requests -----------------------------------------------------------------------------------------------------


def _destination(text: str, default_port: int | None = None) -> Destination:
    """Parse the host in a request. Raises Refused."""
    try:
        return destination(text, default_port)
    except NotAHost as error:
        raise Refused(f"{text[:200]!r} {error}", 400) from error


def _plain_request(request: h11.Request) -> tuple[Destination, h11.Request]:
    """Convert a request with an absolute URL to the request that is sent to the host. Its Host header must match
    the URL."""
    found = _AUTHORITY.fullmatch(request.target.decode("ascii"))
    if found is None:
        raise Refused("this is a proxy: it takes http:// URLs, and CONNECT for everything else", 400)
    goal = _destination(found["authority"], 80)
    sent = [(name.lower(), value) for name, value in request.headers]
    for value in (value for name, value in sent if name == b"host"):
        _require_same(goal, value.decode("latin-1"))
    framing = {name: value for name, value in sent if name in _FRAMING}
    if len(framing) > 1:
        raise Refused("its body has two lengths", 400)
    named = {one.strip().lower() for name, value in sent if name == b"connection" for one in value.split(b",")}
    kept = [(name, value) for name, value in sent if name not in _HOP_BY_HOP and name not in named]
    host = str(goal).removesuffix(":80") if goal.port == 80 else str(goal)
    path = found["path"] or "/"
    headers = [(b"Host", host.encode("ascii")), *kept, (b"Connection", b"close"), *framing.items()]
    target = (path if path.startswith("/") else f"/{path}").encode("ascii")
    return goal, h11.Request(method=request.method, target=target, headers=headers)


def _require_same(goal: Destination, host: str) -> None:
    try:
        same = destination(host, 80) == goal
    except NotAHost:
        same = False
    if not same:
        raise Refused(f"its Host header says {host[:200]!r}, its URL {goal}", 400)


def _require_name(found: tls_client_hello.ClientHello, goal: Destination) -> None:
    """Raise Refused unless a TLS hello contains the unencrypted name of the host. If the host is an IP address, the
    hello must contain no name."""
    if found.is_encrypted:
        raise Refused("its TLS hello hides the host that it means (encrypted client hello)")
    if not found.name and goal.address is None:
        raise Refused("its TLS hello names no host")
    try:
        same = plain_host(found.name) == goal.host if goal.address is None else not found.name
    except NotAHost:
        same = False
    if not same:
        raise Refused(f"its TLS hello says {found.name[:200]!r}, CONNECT {goal}")


# --- bytes --------------------------------------------------------------------------------------------------------


async def _pump(
    read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], Awaitable[None]], writer: asyncio.StreamWriter
) -> None:
    """Relay one direction of a tunnel until it ends, then signal the end to the other side."""
    while data := await read():
        await write(data)
    if writer.can_write_eof():
        writer.write_eof()


async def _forward(client: _Connection, request: h11.Request, host: Streams) -> None:
    """Send one request to the host and its response back. After the response the connection ends.

    Both are parsed and serialized again, so that proxy and host cannot interpret the same bytes differently
    (request smuggling).
    """
    http = h11.Connection(h11.CLIENT)

    async def send(event: h11.Event) -> None:
        if data := http.send(event):
            await client.send(data, host[1])

    async def send_body() -> None:
        try:
            while not isinstance(event := await client.next_event(), h11.EndOfMessage):
                if not isinstance(event, h11.Data):
                    return
                await send(h11.Data(data=bytes(event.data)))
            await send(h11.EndOfMessage())
        # a host that has already answered may stop reading, and its response gives the reason
        except ConnectionError:
            return

    await send(request)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(send_body())
        await _send_answer(client, http, host[0])
        sending.cancel()


async def _send_answer(client: _Connection, http: h11.Connection, host: asyncio.StreamReader) -> None:
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await client.receive(host))
        elif isinstance(event, h11.Response):
            kept = [(name, value) for name, value in event.headers if name not in _OF_THE_HOSTS_CONNECTION]
            kept.append((b"Connection", b"close"))
            await client.answer(h11.Response(status_code=event.status_code, headers=kept, reason=event.reason))
        elif isinstance(event, h11.Data):
            await client.answer(h11.Data(data=bytes(event.data)))
        elif isinstance(event, h11.EndOfMessage):
            await client.answer(h11.EndOfMessage())
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise Refused("the host ended the connection without an answer", 502)
