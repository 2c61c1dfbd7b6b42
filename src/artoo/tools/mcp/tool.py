"""MCP tools as artoo tools, with shortened descriptions and approval, and the pool of servers.

A description that the server sends is not trusted.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.arguments import as_text
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.approval.ask_first import Asking
from artoo.tools.approval.gate import Gate
from artoo.tools.core.tool import Arguments, Outcome, Tool, argument
from artoo.tools.files.unified_diff import plain
from artoo.tools.mcp.connection import MOST_TOOLS, McpConnection
from artoo.tools.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp_types import Tool as Offered


KeepImage = Callable[[str, bytes], Awaitable[str]]
"""Stores an image where commands of the task can read it, and returns a line with its path."""

MCP_PRIORITY = 70
_GRACE_SECONDS = 30.0
_MOST_DESCRIPTION = 200
_NOTHING = Parameter("nothing", "takes no argument", required=False)


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of one MCP server. The server validates the parts of the arguments that the registry does not
    validate."""

    connection: McpConnection
    name: str
    offered_as: str
    description: str
    schema: Mapping[str, JsonValue]
    read_only: bool
    keep_image: KeepImage | None = None

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self._parameters(),
            priority=MCP_PRIORITY,
            writes=not self.read_only,
            only_reads=self.read_only,
            special=True,
        )

    @property
    def wall_seconds(self) -> float:
        """Return the time limit. It includes a possible start of the server. In all other cases the connection ends
        a call earlier."""
        return self.connection.call_seconds + _GRACE_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (f"mcp:{self.connection.server.name}:{re.sub(r'[^A-Za-z0-9_.-]', '_', self.offered_as)}",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, self._parameters()[0].name)

    def why_ask(self, arguments: Arguments) -> str | None:
        """Return the reason why a call needs approval. Return None if the call is trusted to only read."""
        server = self.connection.server
        return ask_about_mcp(server.name, self.offered_as, trusted=server.trust_read_only, reads=self.read_only)

    async def run(self, arguments: Arguments) -> Outcome:
        """Call the tool. Raises ToolError if the server cannot be used."""
        values: dict[str, object] = {name: value for name, value in arguments.items() if name in self._properties}
        answer = await self.connection.call(self.offered_as, values)
        kept = [await self.keep_image(kind, image) for kind, image in answer.images] if self.keep_image else []
        return Outcome(
            output="\n".join((answer.text, *filter(None, kept))),
            status=CallStatus.ERROR if answer.is_error else CallStatus.OK,
            truncated=answer.total_characters > len(answer.text),
            reason="the tool says that it failed" if answer.is_error else None,
        )

    @property
    def _properties(self) -> Mapping[str, JsonValue]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    def _parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters, required parameters first."""
        listed = self.schema.get("required")
        required = listed if isinstance(listed, list) else []
        definitions = {"$defs": defined} if (defined := self.schema.get("$defs")) else {}
        names = sorted(self._properties, key=lambda name: name not in required)
        schemas = {name: found if isinstance(found := self._properties[name], dict) else {} for name in names}
        return tuple(
            Parameter(name, _described(schema), name in required, schema={**schema, **definitions})
            for name, schema in schemas.items()
        ) or (_NOTHING,)


def ask_about_mcp(server: str, name: str, *, trusted: bool, reads: bool) -> str | None:
    """Return why a call of an MCP tool needs approval. Return None if the tool claims to only read and the user
    trusts the claim.

    `trusted`: true if the user's configuration trusts this server (`trustReadOnly`).
    """
    # The name and the arguments of a tool do not prove that it only reads.
    if trusted and reads:
        return None
    if reads:
        said = "that it only reads is the server's word (trustReadOnly in the configuration believes it)"
    else:
        said = "the server does not say that it only reads"
    return f"{server}.{name}: {said}"


def mcp_tools(connection: McpConnection, offered: Iterable[Offered], taken: Iterable[str]) -> tuple[McpTool, ...]:
    """Return the tools of one server, under names that are unique. `taken` are the names of other tools."""
    used = set(taken)
    made: list[McpTool] = []
    for one in offered:
        name = _free(re.sub(r"\W", "_", f"{connection.server.name}_{one.name}", flags=re.ASCII)[:60], used)
        used.add(name)
        hints = one.annotations
        made.append(
            McpTool(
                connection,
                name,
                one.name,
                plain(" ".join((one.description or one.title or one.name).split()))[:_MOST_DESCRIPTION],
                cast("Mapping[str, JsonValue]", one.input_schema),
                read_only=hints is not None and hints.read_only_hint is True and hints.destructive_hint is not True,
            )
        )
    return tuple(made)


def _wanted(connection: McpConnection) -> Callable[[Offered], bool]:
    return lambda one: connection.server.offers(one.name)


def _free(name: str, used: set[str]) -> str:
    number, free = 2, name
    while free in used:
        free, number = f"{name}_{number}", number + 1
    return free


def _described(schema: Mapping[str, JsonValue]) -> str:
    said = schema.get("description") or schema.get("type") or "any value"
    return plain(" ".join(as_text(said).split()))[:_MOST_DESCRIPTION]


logger = logging.getLogger(__name__)

MOST_SERVERS = 64
"""Maximum number of servers to which one artoo process connects. The tools of further servers are not offered."""


class McpPool:
    """Connections to servers. A connection is started on first use, in a task group that exists as long as the
    pool."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._connections: dict[McpServer, McpConnection] = {}
        self._running: list[asyncio.Task[None]] = []

    async def tools(
        self,
        servers: Iterable[McpServer],
        gate: Gate,
        taken: Iterable[str],
        *,
        most_tokens: int | None = None,
        keep_image: KeepImage | None = None,
    ) -> tuple[Tool, ...]:
        """Return the tools of these servers, which ask the gate first. A server that is not available offers no
        tools, which is logged.

        If the descriptions take more than `most_tokens` tokens, two tools that find and call these tools are
        offered instead.
        """
        from artoo.tools.mcp.deferred import deferred, tokens_of
        from artoo.tools.mcp.resources import ReadResource

        connections = [known for server in servers if (known := self._connection(server)) is not None]
        most = MOST_TOOLS if most_tokens is None else None
        listed = await asyncio.gather(*(one.tools(most) for one in connections), return_exceptions=True)
        used, made = set(taken), list[Asking]()
        for connection, offered in zip(connections, listed, strict=True):
            if isinstance(offered, ToolError):
                logger.warning("%s; its tools are not offered", offered)
                continue
            if isinstance(offered, BaseException):
                raise offered
            for named in mcp_tools(connection, filter(_wanted(connection), offered), used):
                tool = replace(named, keep_image=keep_image)
                used.add(tool.name)
                made.append(Asking(tool, gate, tool.why_ask, reads_only=tool.read_only, outward=True))
        reading = {one.server.name: one for one in connections if one.has_resources}
        resources = ReadResource(_free("read_resource", used), reading)
        read = (Asking(resources, gate, resources.why_ask, reads_only=True, outward=True),) if reading else ()
        if most_tokens is None or tokens_of(tool.spec for tool in made) <= most_tokens:
            return (*made, *read)
        names = [
            one.server.name for one, offered in zip(connections, listed, strict=True) if isinstance(offered, tuple)
        ]
        return (*deferred(made, names, used), *read)

    async def close(self) -> None:
        """End every server."""
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
