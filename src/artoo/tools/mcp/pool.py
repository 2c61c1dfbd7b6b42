"""The MCP servers of one artoo: each is connected once, whichever tasks use it, and all end with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from artoo.contracts.errors import ToolError
from artoo.tools.approval.ask_first import Asking
from artoo.tools.approval.gate import Gate
from artoo.tools.mcp.connection import McpConnection
from artoo.tools.mcp.servers import McpServer
from artoo.tools.mcp.tool import mcp_tools

logger = logging.getLogger(__name__)

MOST_SERVERS = 64
"""Servers that one artoo keeps; the tools of further ones are not offered."""


class McpPool:
    """Connections, started when first used, in a task group that outlives them."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._connections: dict[McpServer, McpConnection] = {}
        self._running: list[asyncio.Task[None]] = []

    async def tools(self, servers: Iterable[McpServer], gate: Gate, taken: Iterable[str]) -> tuple[Asking, ...]:
        """The tools of these servers behind the gate. A server that is not there offers none, and is logged."""
        connections = [known for server in servers if (known := self._connection(server)) is not None]
        listed = await asyncio.gather(*(one.tools() for one in connections), return_exceptions=True)
        used, made = set(taken), list[Asking]()
        for connection, offered in zip(connections, listed, strict=True):
            if isinstance(offered, ToolError):
                logger.warning("%s; its tools are not offered", offered)
                continue
            if isinstance(offered, BaseException):
                raise offered
            for tool in mcp_tools(connection, offered, used):
                used.add(tool.name)
                made.append(Asking(tool, gate, tool.why_ask, reads_only=tool.read_only, outward=True))
        return tuple(made)

    async def close(self) -> None:
        """Ends every server."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        self._connections.clear()

    def _connection(self, server: McpServer) -> McpConnection | None:
        known = self._connections.get(server)
        if known is None:
            if len(self._connections) >= MOST_SERVERS:
                logger.warning(
                    "%d MCP servers are kept already; the tools of %s are not offered", MOST_SERVERS, server.name
                )
                return None
            known = self._connections[server] = McpConnection(server)
            self._running.append(self._group.create_task(known.run()))
        return known
