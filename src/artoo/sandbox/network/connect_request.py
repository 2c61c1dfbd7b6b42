"""Reads what a command asks the proxy for, strictly, and answers it when that is refused."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import cast

import h11

from artoo.sandbox.network.allowlist import Destination, NotAHost, destination

_AUTHORITY = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>[/?][^#]*)?", re.IGNORECASE)
_LONGEST_HEAD = 32 * 1024
_HEAD_CHUNK = 4096
_CHUNK = 64 * 1024
_HOP_BY_HOP = frozenset(
    b"connection proxy-connection keep-alive te trailer upgrade http2-settings proxy-authorization"
    b" proxy-authenticate transfer-encoding content-length host expect".split()
)
"""Headers that concern this connection and not the request, or that the proxy writes itself."""

_DENIED = 403


class Refused(Exception):
    """The proxy refuses a connection. `status` is HTTP's."""

    def __init__(self, reason: str, status: int = _DENIED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status

    @property
    def is_denial(self) -> bool:
        """True if the command may not reach the host, and not that the host failed or the request was malformed."""
        return self.status == _DENIED


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """What the command wants. `is_tunnel`: CONNECT, then any protocol. The other fields are for plain HTTP."""

    goal: Destination
    is_tunnel: bool
    method: bytes = b""
    path: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    length: int | None = None
    chunked: bool = False


class ClientConnection:
    """The connection from the command: reads one request, and answers it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)

    async def request(self) -> ProxyRequest:
        """Read the head. Raises Refused if it could be read in two ways, EOFError when none comes."""
        try:
            event = await self.next_event()
        except h11.RemoteProtocolError as error:
            raise Refused(f"this is no request to a proxy: {error}", 400) from error
        if event is None or isinstance(event, (h11.Data, h11.EndOfMessage, h11.ConnectionClosed)):
            raise EOFError
        if event.method == b"CONNECT":
            return ProxyRequest(_connect_goal(event.target), is_tunnel=True)
        return _plain_request(event)

    async def next_event(self) -> h11.Request | h11.Data | h11.EndOfMessage | h11.ConnectionClosed | None:
        """Return the next part of the request; None when the command paused. Raises h11.RemoteProtocolError."""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self.send(h11.InformationalResponse(status_code=100, headers=[]))
                size = _HEAD_CHUNK if self._http.their_state is h11.IDLE else _CHUNK
                self._http.receive_data(await self.reader.read(size))
            elif event is h11.PAUSED:
                return None
            else:
                return cast("h11.Request | h11.Data | h11.EndOfMessage | h11.ConnectionClosed", event)

    async def send(self, event: h11.Event) -> None:
        """Send a part of the answer."""
        data = self._http.send(event)
        if data:
            self.writer.write(data)
            await self.writer.drain()

    async def accept(self) -> bytes:
        """Agree to a tunnel; return what the command has sent ahead."""
        await self.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
        return self._http.trailing_data[0]

    async def refuse(self, refusal: Refused) -> None:
        """Answer with the reason, in the status line too, because many clients show only that.

        Nothing is sent when an answer has already begun.
        """
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        text = f"artoo: {refusal.reason}"
        body = f"{text}\n".encode("ascii", "replace")
        headers = [
            ("Content-Type", "text/plain"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        reason = text.encode("ascii", "replace")
        await self.send(h11.Response(status_code=refusal.status, headers=headers, reason=reason))
        await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())


def _connect_goal(target: bytes) -> Destination:
    text = target.decode("ascii")
    try:
        return destination(text)
    except NotAHost as error:
        raise Refused(f"{text[:200]!r} {error}", 400) from error


def _plain_request(request: h11.Request) -> ProxyRequest:
    """Read a request with an absolute URL. All that names its host must name the same one."""
    found = _AUTHORITY.fullmatch(request.target.decode("ascii"))
    if found is None:
        raise Refused("this is a proxy: it takes http:// URLs, and CONNECT for everything else", 400)
    authority = found["authority"]
    try:
        goal = destination(authority, 80)
    except NotAHost as error:
        raise Refused(f"{authority[:200]!r} {error}", 400) from error
    sent = [(name.lower(), value) for name, value in request.headers]
    for value in (value for name, value in sent if name == b"host"):
        _require_same(goal, value.decode("latin-1"))
    framing = {name for name, _ in sent} & {b"content-length", b"transfer-encoding"}
    if len(framing) > 1:
        raise Refused("its body has two lengths", 400)
    lengths = [value for name, value in sent if name == b"content-length"]
    named = {one.strip().lower() for name, value in sent if name == b"connection" for one in value.split(b",")}
    path = found["path"] or "/"
    return ProxyRequest(
        goal,
        is_tunnel=False,
        method=request.method,
        path=(path if path.startswith("/") else f"/{path}").encode("ascii"),
        headers=tuple((name, value) for name, value in sent if name not in _HOP_BY_HOP and name not in named),
        length=int(lengths[0]) if lengths else None,
        chunked=b"transfer-encoding" in framing,
    )


def _require_same(goal: Destination, host: str) -> None:
    try:
        same = destination(host, 80) == goal
    except NotAHost:
        same = False
    if not same:
        raise Refused(f"its Host header says {host[:200]!r}, its URL {goal}", 400)
