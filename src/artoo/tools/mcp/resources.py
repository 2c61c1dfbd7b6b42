"""The tool `read_resource`, which lists and reads resources of MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artoo.contracts.errors import ToolError
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.tool import Arguments, Outcome, argument
from artoo.tools.mcp.connection import McpConnection
from artoo.tools.mcp.tool import MCP_PRIORITY, ask_about_mcp

_GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ReadResource:
    """Reads a resource of a server, or lists its resources. `connections`: the servers that have resources, by
    name."""

    name: str
    connections: Mapping[str, McpConnection]

    @property
    def spec(self) -> ToolSpec:
        servers = ", ".join(self.connections)
        return ToolSpec(
            name=self.name,
            description=f"read a resource of an MCP server ({servers}); without uri, list those of the server",
            parameters=(
                Parameter("server", "the server's name"),
                Parameter("uri", "the resource", required=False),
            ),
            priority=MCP_PRIORITY,
            only_reads=True,
            special=True,
        )

    @property
    def wall_seconds(self) -> float:
        """Return the time limit. It includes a possible start of the server. In all other cases the connection ends
        a call earlier."""
        return max(one.call_seconds for one in self.connections.values()) + _GRACE_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (f"mcp:{argument(arguments, 'server')}:resources",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "uri") or argument(arguments, "server")

    def why_ask(self, arguments: Arguments) -> str | None:
        """Return the reason why a call needs approval. Return None if the server is unknown, or if the user trusts
        its claim that reading has no effects."""
        found = self.connections.get(argument(arguments, "server"))
        trusted = found is None or found.server.trust_read_only
        return ask_about_mcp(argument(arguments, "server"), "resources", trusted=trusted, reads=True)

    async def run(self, arguments: Arguments) -> Outcome:
        """Read from the server. Raises ToolError if the server is unknown or cannot be used."""
        wanted, uri = argument(arguments, "server"), argument(arguments, "uri")
        found = self.connections.get(wanted)
        if found is None:
            raise ToolError(f"no server {wanted!r} has resources; these have: {', '.join(self.connections)}")
        answer = await (found.read_resource(uri) if uri else found.list_resources())
        return Outcome(output=answer.text, truncated=answer.total_characters > len(answer.text))
