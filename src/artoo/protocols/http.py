"""The loopback HTTP server of protocols, with token, Host and Origin checks, and limits on body and connections.

Requests of web pages in a browser are refused.

The caller is checked before any part of the body is read.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import made_once

HOST = "127.0.0.1"
LARGEST_BODY = 4 << 20
"""Maximum number of bytes of a request."""
MOST_CONNECTIONS = 200
CALLER = "artoo.caller"
"""The key under which the ASGI scope contains the name of the caller. Each caller has a token of its own."""
_SHORTEST_TOKEN = 20
_CLOSING_SECONDS = 5


def own_token(home: Path, name: str) -> str:
    """Return the token in a file in artoo's home. If there is no file, create one that only its owner can read.

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
    """ASGI middleware that requires a token. Without a valid token, it answers with status 401 before it reads the
    body.

    `tokens` maps each caller's name to its token. `public` lists the paths for which no token is needed.
    """

    def __init__(self, inner: ASGIApp, tokens: Mapping[str, str], public: Collection[str] = ()) -> None:
        self._inner = inner
        self._expected = {name: f"Bearer {token}".encode() for name, token in tokens.items()}
        self._public = frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that has a valid token. Implements ASGI."""
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
        """Return the name of the caller. All tokens are compared, so that the response time does not reveal
        anything."""
        given: list[bytes] = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return None
        found = [name for name, expected in self._expected.items() if hmac.compare_digest(given[0], expected)]
        return found[0] if found else None


class OwnNames:
    """ASGI middleware that checks Host and Origin. A browser could otherwise reach the loopback interface under
    another host name.

    `names` are the host names that are accepted, as `HOST:PORT` or `HOST`. The host of an Origin must be in `names`
    too.
    """

    def __init__(self, inner: ASGIApp, names: Collection[str]) -> None:
        self._inner = inner
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose Host and Origin are names of this server. Implements ASGI, without websockets."""
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


class LoopbackServer(uvicorn.Server):
    """A uvicorn server that does not handle signals, because its caller ends the tasks first."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Install no signal handlers."""
        yield


def listening_at(port: int) -> socket.socket:
    """Open a listening socket on the loopback interface. Raises ConfigurationError if the port cannot be used."""
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
    """Return the names (`HOST:PORT`) under which this machine reaches the server."""
    return [f"{host}:{port}" for host in (HOST, "localhost")]


async def serve_on(listening: socket.socket, app: ASGIApp) -> None:
    """Serve until cancelled. Then requests that are running have `_CLOSING_SECONDS` to end."""
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
    except asyncio.CancelledError:
        # If uvicorn itself were cancelled, its lifespan would end with a traceback.
        server.should_exit = True
        await serving
        raise
