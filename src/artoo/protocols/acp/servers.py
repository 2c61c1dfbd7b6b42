"""The MCP servers that an editor passes along: programs that its person has configured there.

They are started as the person's own are, for the session that they came with. What their tools say of themselves is
not believed: only a server of artoo's own configuration can be trusted to only read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.schema import HttpMcpServer, McpServerStdio

from artoo.contracts.errors import ConfigurationError
from artoo.tools.mcp.servers import McpServer, servers_of

MOST_SERVERS = 16
"""Servers of one session."""
_WHERE = "the session"
_LONGEST_NAME = 60


def passed_servers(given: Sequence[object]) -> tuple[McpServer, ...]:
    """As artoo knows servers. Raises ConfigurationError for what cannot be one."""
    if len(given) > MOST_SERVERS:
        raise ConfigurationError(f"{len(given)} MCP servers came with the session; it may have {MOST_SERVERS}")
    entries: dict[str, dict[str, object]] = {}
    for one in given:
        name, entry = _entry(one)
        entries[_free(name, entries)] = entry
    return servers_of(entries, _WHERE)


def _entry(one: object) -> tuple[str, dict[str, object]]:
    if isinstance(one, McpServerStdio):
        env = {variable.name: variable.value for variable in one.env}
        return one.name, {"command": one.command, "args": one.args, "env": env}
    if isinstance(one, HttpMcpServer):
        return one.name, {"url": one.url, "headers": {header.name: header.value for header in one.headers}}
    kind = str(getattr(one, "type", type(one).__name__))
    raise ConfigurationError(f"an MCP server of the kind {kind!r} cannot be used: programs and streamable HTTP can")


def _free(name: str, taken: dict[str, dict[str, object]]) -> str:
    """A name that tools can carry: what an editor shows may have spaces, and come twice."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_.-")[:_LONGEST_NAME] or "server"
    number, free = 2, plain
    while free in taken:
        free, number = f"{plain}_{number}", number + 1
    return free
