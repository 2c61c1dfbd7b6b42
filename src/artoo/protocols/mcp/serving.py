"""`artoo mcp`: one runtime, one intake, one server, until the client leaves or the process is asked to end."""

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
from artoo.protocols.handed import Fetching
from artoo.protocols.http import (
    LARGEST_BODY,
    BoundedBody,
    TokenRequired,
    listening_at,
    own_names,
    own_token,
    serve_on,
)
from artoo.protocols.intake import open_intake
from artoo.protocols.json_lines import JsonLines
from artoo.protocols.mcp.server import made_server
from artoo.protocols.standard_streams import standard_wire
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.model import Config


async def serve(config: Config, project: Path, port: int | None, say: Callable[[str], None]) -> None:
    """Serves on standard input and output, or (`port`, 0 for any) by HTTP on loopback.

    Raises ConfigurationError.
    """
    fetching = Fetching()
    async with Artoo(config, on_fetch=fetching) as artoo, open_intake(artoo, config, fetching) as intake:
        server = made_server(intake, project)
        if port is None:
            await until_asked_to_end(serve_stdio(server))
            return
        token = own_token(config.home, TOKEN_FILE)

        def ready(bound: int) -> None:
            say(f"MCP at http://127.0.0.1:{bound}/mcp; the token is in {config.home / TOKEN_FILE}; Ctrl-C stops")

        await until_asked_to_end(serve_http(server, token, port, ready))


TOKEN_FILE = "mcp-token"
MOST_SESSIONS = 64


def http_app(server: MCPServer[Any], token: str | None, port: int) -> ASGIApp:
    """The application; `token` None only for a conformance suite, which cannot send one."""
    names = own_names(port)
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=LARGEST_BODY, max_sessions=MOST_SESSIONS
    )
    whole = BoundedBody(app)
    return whole if token is None else TokenRequired(whole, {"": token})


async def serve_http(server: MCPServer[Any], token: str | None, port: int, ready: Callable[[int], None]) -> None:
    """Serves until the process is asked to end. `ready` is told the port. Raises ConfigurationError."""
    with listening_at(port) as listening:
        bound: int = listening.getsockname()[1]
        ready(bound)
        await serve_on(listening, http_app(server, token, bound))


logger = logging.getLogger(__name__)

_QUEUED = 16
_LAST_WORDS_SECONDS = 5.0


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serves until the client closes standard input."""
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage] (what run_stdio_async does, on our own wire)
    async with standard_wire() as wire, messages_on(JsonLines(wire)) as (incoming, outgoing):
        await low.run(incoming, outgoing, low.create_initialization_options())


@asynccontextmanager
async def messages_on(
    lines: JsonLines,
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """The lines as the SDK's two streams."""
    to_server, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](_QUEUED)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](_QUEUED)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_read(lines, to_server))
        writing = group.create_task(_write(lines, from_server))
        try:
            yield incoming, outgoing
        finally:
            reading.cancel()
            outgoing.close()
            await asyncio.wait([writing], timeout=_LAST_WORDS_SECONDS)
            writing.cancel()


async def _read(lines: JsonLines, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    with suppress(ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with to_server:
            while (message := await lines.receive()) is not None:
                try:
                    known = jsonrpc_message_adapter.validate_python(message, by_name=False)
                except ValidationError:  # an answer of a form that the protocol does not have: nobody waits for it
                    logger.warning("an answer of the client is none: %s", str(message)[:500])
                    continue
                await to_server.send(SessionMessage(known))


async def _write(lines: JsonLines, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """A reader that is gone ends nothing here: its end is noticed where it is read."""
    with suppress(ConnectionError):
        async for sent in from_server:
            await lines.send(sent.message.model_dump(mode="json", by_alias=True, exclude_unset=True))
