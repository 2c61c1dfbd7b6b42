"""`artoo mcp` by standard input or HTTP, with its token file and the limit on sessions.

It runs until the client disconnects or a signal ends the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.types import ASGIApp

from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.http import LARGEST_BODY, TokenRequired, listening_at, own_names, own_token, serve_on
from artoo.protocols.intake import serving_intake
from artoo.protocols.mcp.server import made_server
from artoo.protocols.wire import INVALID_REQUEST, Wire, standard_wire
from artoo.runtime.config.model import Config

logger = logging.getLogger(__name__)

TOKEN_FILE = "mcp-token"
MOST_SESSIONS = 64
_QUEUED = 16
_LAST_WORDS_SECONDS = 5.0
"""Number of seconds that the last answers may take after the client has closed standard input."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


async def serve(config: Config, project: Path, port: int | None, say: Callable[[str], None]) -> None:
    """Serve on standard input and output. With a `port`, serve by HTTP on the loopback interface (0 means any free
    port).

    Raises ConfigurationError.
    """
    async with serving_intake(config) as intake:
        server = made_server(intake, project)
        if port is None:
            await until_asked_to_end(serve_stdio(server))
            return
        token = own_token(config.home, TOKEN_FILE)

        def ready(bound: int) -> None:
            say(f"MCP at http://127.0.0.1:{bound}/mcp; the token is in {config.home / TOKEN_FILE}; Ctrl-C stops")

        await until_asked_to_end(serve_http(server, token, port, ready))


def http_app(server: MCPServer[Any], token: str | None, port: int) -> ASGIApp:
    """Build the HTTP application. `token` is None only for a conformance test, which cannot send a token."""
    names = own_names(port)
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=LARGEST_BODY, max_sessions=MOST_SESSIONS
    )
    return app if token is None else TokenRequired(app, {"": token})


async def serve_http(server: MCPServer[Any], token: str | None, port: int, ready: Callable[[int], None]) -> None:
    """Serve by HTTP until cancelled. `ready` is called with the number of the port. Raises ConfigurationError."""
    with listening_at(port) as listening:
        bound: int = listening.getsockname()[1]
        ready(bound)
        await serve_on(listening, http_app(server, token, bound))


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve until the client closes standard input."""
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage] (as run_stdio_async does, on our own wire)
    async with standard_wire() as wire, messages_on(wire) as (incoming, outgoing):
        await low.run(incoming, outgoing, low.create_initialization_options())


@asynccontextmanager
async def messages_on(wire: Wire) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Connect the two message streams of the SDK to the wire while the block runs."""
    to_server, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](_QUEUED)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_read(wire, to_server))
        writing = group.create_task(_write(wire, from_server))
        try:
            yield incoming, outgoing
        finally:
            reading.cancel()
            # When the stream is closed, the writer sends the last answers and ends.
            outgoing.close()
            await asyncio.wait([writing], timeout=_LAST_WORDS_SECONDS)
            writing.cancel()


async def _read(wire: Wire, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with to_server:
            while (message := await wire.receive()) is not None:
                try:
                    known = jsonrpc_message_adapter.validate_python(message, by_name=False)
                except ValidationError as error:
                    logger.warning("a message of the client is not one of MCP: %s", str(message)[:500])
                    refusal = {
                        "code": INVALID_REQUEST,
                        "message": f"not an MCP message: {error.error_count()} errors",
                    }
                    if "method" in message and "id" in message:
                        await wire.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
                    continue
                await to_server.send(SessionMessage(known))


async def _write(wire: Wire, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async for sent in from_server:
        await wire.send(sent.message.model_dump(mode="json", by_alias=True, exclude_unset=True))
