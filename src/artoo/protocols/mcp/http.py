"""MCP over streamable HTTP: on loopback only, for whoever knows the token.

Host and Origin are checked by the SDK (a page in a browser can reach loopback by another name); the token is
checked before a byte of the body is read.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from artoo.contracts.errors import ConfigurationError

HOST = "127.0.0.1"
TOKEN_FILE = "mcp-token"
LARGEST_BODY = 4 << 20
MOST_SESSIONS = 64
_SHORTEST_TOKEN = 20


def own_token(home: Path) -> str:
    """The token in artoo's home, made the first time, for its owner only. Raises ConfigurationError."""
    file = home / TOKEN_FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as made:  # noqa: PTH123 (of a descriptor)
            made.write(secrets.token_urlsafe(32) + "\n")
    except FileExistsError:
        pass
    token = file.read_text(encoding="ascii", errors="replace").strip()
    if len(token) < _SHORTEST_TOKEN or file.stat().st_mode & 0o077:
        raise ConfigurationError(f"{file} is too short or open to others; remove it, and a new one is made")
    return token


class TokenRequired:
    """Lets requests pass that carry the token; the others get 401 and nothing is read of them."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and not self._known(scope):
            refused = JSONResponse(
                {"error": "the token is missing or wrong: Authorization: Bearer …"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refused(scope, receive, send)
            return
        await self._inner(scope, receive, send)

    def _known(self, scope: Scope) -> bool:
        given: list[bytes] = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def http_app(server: MCPServer[Any], token: str | None, port: int) -> ASGIApp:
    """The application; `token` None only for a conformance suite, which cannot send one."""
    names = [f"{host}:{port}" for host in (HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=LARGEST_BODY, max_sessions=MOST_SESSIONS
    )
    return app if token is None else TokenRequired(app, token)


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it: uvicorn's own handling would end the process before tasks are ended."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Captures none."""
        yield


async def serve_http(server: MCPServer[Any], token: str | None, port: int, ready: Callable[[int], None]) -> None:
    """Serves until the process is asked to end. `ready` is told the port. Raises ConfigurationError."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise ConfigurationError(f"port {port} of {HOST} cannot be used: {error.strerror}; --port") from error
        bound: int = listening.getsockname()[1]
        config = uvicorn.Config(
            http_app(server, token, bound), log_level="warning", access_log=False, timeout_graceful_shutdown=5
        )
        ready(bound)
        await _Server(config).serve(sockets=[listening])
