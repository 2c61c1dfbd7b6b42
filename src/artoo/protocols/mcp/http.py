"""MCP over streamable HTTP: the SDK's application, which checks Host and Origin, behind the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from artoo.protocols.http import (
    LARGEST_BODY,
    BoundedBody,
    TokenRequired,
    WellFormedBody,
    listening_at,
    own_names,
    serve_on,
)

TOKEN_FILE = "mcp-token"
MOST_SESSIONS = 64


def http_app(server: MCPServer[Any], token: str | None, port: int) -> ASGIApp:
    """The application; `token` None only for a conformance suite, which cannot send one."""
    names = own_names(port)
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=LARGEST_BODY, max_sessions=MOST_SESSIONS
    )
    whole = BoundedBody(WellFormedBody(app))
    return whole if token is None else TokenRequired(whole, {"": token})


async def serve_http(server: MCPServer[Any], token: str | None, port: int, ready: Callable[[int], None]) -> None:
    """Serves until the process is asked to end. `ready` is told the port. Raises ConfigurationError."""
    with listening_at(port) as listening:
        bound: int = listening.getsockname()[1]
        ready(bound)
        await serve_on(listening, http_app(server, token, bound))
