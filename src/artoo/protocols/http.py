"""HTTP for other programs: on loopback only, for whoever knows a token, and never for a page of a browser.

Whoever asks is looked at before a byte of the body is read.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import made_once
from artoo.protocols.json_lines import read_json

HOST = "127.0.0.1"
LARGEST_BODY = 4 << 20
"""Bytes of a request."""
MOST_CONNECTIONS = 200
CALLER = "artoo.caller"
"""Where the name of whoever has the token stands in the scope."""
_SHORTEST_TOKEN = 20
_CLOSING_SECONDS = 5


def own_token(home: Path, name: str) -> str:
    """The token in this file of artoo's home, made the first time, for its owner only.

    Raises ConfigurationError.
    """
    file = home / name
    made = made_once(file, _new_token)
    token = made.decode("ascii", errors="replace").strip()
    if len(token) < _SHORTEST_TOKEN or file.stat().st_mode & 0o077:
        raise ConfigurationError(f"{file} is too short or open to others; remove it, and a new one is made")
    return token


def _new_token() -> bytes:
    return f"{secrets.token_urlsafe(32)}\n".encode()


class TokenRequired:
    """Lets requests pass that carry a token, with its holder's name; of others nothing is read, they get 401.

    `tokens`: by name. `public` are paths that need none.
    """

    def __init__(self, inner: ASGIApp, tokens: Mapping[str, str], public: Collection[str] = ()) -> None:
        self._inner = inner
        self._expected = {name: f"Bearer {token}".encode() for name, token in tokens.items()}
        self._public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            name = self._holder(scope)
            if name is None:
                refused = JSONResponse(
                    {"error": "the token is missing or wrong: Authorization: Bearer …"},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refused(scope, receive, send)
                return
            scope = {**scope, CALLER: name}
        await self._inner(scope, receive, send)

    def _holder(self, scope: Scope) -> str | None:
        """Whose token it is. All are compared, so that the time tells nothing."""
        given: list[bytes] = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return None
        found = [name for name, expected in self._expected.items() if hmac.compare_digest(given[0], expected)]
        return found[0] if found else None


class OwnNames:
    """Lets requests pass that were meant for this server: a page in a browser can reach loopback by another name.

    `names` are `HOST:PORT` or `HOST`; an Origin must be one of them too.
    """

    def __init__(self, inner: ASGIApp, names: Collection[str]) -> None:
        self._inner = inner
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. There are no websockets here."""
        if scope["type"] == "websocket":
            return
        refused = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (self._inner if refused is None else refused)(scope, receive, send)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self._names:
            return JSONResponse({"error": "this is not the host that was asked for"}, status_code=421)
        if any(origin.partition("://")[2] not in self._names for origin in origins):
            return JSONResponse({"error": "no page may ask here"}, status_code=403)
        return None


class BoundedBody:
    """Reads the body whole, and ends requests whose body is too large, whether they say so or not.

    Half a character in JSON (`"\\ud83d"`), which a strict reader would refuse, becomes `?`. What is no JSON is
    handed on as it is.
    """

    def __init__(self, inner: ASGIApp, largest: int = LARGEST_BODY) -> None:
        self._inner = inner
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope), receive)
        except ConnectionError:  # half a request is none
            return
        if body is None:
            refused = JSONResponse({"error": f"the body is larger than {self._largest:,} bytes"}, status_code=413)
            await refused(scope, receive, send)
            return
        if scope["method"] == "POST":
            body = _well_formed(body)
            length = (b"content-length", str(len(body)).encode())
            headers = [length if name == length[0] else (name, value) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        whole: Message = {"type": "http.request", "body": body, "more_body": False}
        await self._inner(scope, given(whole, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """None: it is too large. Raises ConnectionError when the client leaves before it is whole."""
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > self._largest:
            return None
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionError
            body += message.get("body", b"")
            if len(body) > self._largest:
                return None
            if not message.get("more_body", False):
                return bytes(body)


def _well_formed(body: bytes) -> bytes:
    try:
        from_json(body)
    except ValueError:
        with suppress(ValueError):
            return json.dumps(read_json(body), ensure_ascii=False).encode()
    return body


def given(message: Message, receive: Receive) -> Receive:
    """Gives a message that was taken already, then what comes after it."""
    taken = False

    async def again() -> Message:
        nonlocal taken
        if taken:
            return await receive()  # how the client leaves
        taken = True
        return message

    return again


class LoopbackServer(uvicorn.Server):
    """Leaves signals to whoever runs it: uvicorn's own handling would end the process before tasks are ended."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Captures none."""
        yield


def listening_at(port: int) -> socket.socket:
    """A socket of the loopback interface, which answers from now on. Raises ConfigurationError."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(MOST_CONNECTIONS)
    except OSError as error:
        listening.close()
        raise ConfigurationError(f"port {port} of {HOST} cannot be used: {error.strerror}; --port") from error
    return listening


def own_names(port: int) -> list[str]:
    """How this server is called on this machine."""
    return [f"{host}:{port}" for host in (HOST, "localhost")]


async def serve_on(listening: socket.socket, app: ASGIApp) -> None:
    """Serves until it is cancelled: then no more is taken, and what is answered has some seconds to its end."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    server = LoopbackServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:  # to cancel uvicorn itself would end its lifespan with a traceback
        server.should_exit = True
        await serving
        raise
