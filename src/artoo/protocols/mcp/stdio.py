"""MCP over standard input and output, on our own bounded wire."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from artoo.protocols.json_lines import JsonLines
from artoo.protocols.standard_streams import standard_wire

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
