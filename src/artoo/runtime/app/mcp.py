"""Select and start a task's MCP servers from the configuration, `mcp.json` and a project's `.mcp.json`.

The servers of a project start only after the user has approved them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.model import Config
from artoo.tools.approval.gate import Gate
from artoo.tools.core.registry import Registry
from artoo.tools.core.to_thread import in_thread
from artoo.tools.mcp.servers import McpServer, Shelter, read_servers

if TYPE_CHECKING:
    from artoo.tools.mcp.tool import KeepImage, McpPool

logger = logging.getLogger(__name__)
PROJECT_FILE = ".mcp.json"
HOME_FILE = "mcp.json"
SHELTER = "mcp"
"""The folder below artoo's home that is the working directory of the user's own servers."""


def own_servers(config: Config, others: Iterable[McpServer] = ()) -> tuple[McpServer, ...]:
    """Return the user's own servers. If several have the same name, the first one is used. The order is the
    configuration, `mcp.json` in the home, `others`.

    Raises ConfigurationError.
    """
    # They start in this folder, so that they load no file of a project or of the output folder as a module.
    configured = [entry.named(name) for name, entry in config.mcp_servers.items() if not entry.disabled]
    listed = (*configured, *read_servers(config.home / HOME_FILE), *others)
    first = {server.name: server for server in reversed(listed)}
    shelter = Shelter(config.home / SHELTER, (str(config.workspace_path),))
    return tuple(replace(server, shelter=shelter) for server in reversed(first.values()))


async def agreed_servers(project: Path, own: tuple[McpServer, ...], gate: Gate) -> tuple[McpServer, ...]:
    """Return `own`, and also the servers of the project's file if the user agrees to start them. A relative `cwd`
    is relative to the project. A server of the project without `cwd` starts in the project.
    """
    # Another person may have written the project's file. Therefore errors in it are only logged, and it cannot mark
    # a server as trusted.
    own = tuple(_in_project(server, project) if server.cwd is not None else server for server in own)
    try:
        found = await in_thread(read_servers, project / PROJECT_FILE)
    except ConfigurationError as error:
        logger.warning("%s; its servers are not started", error)
        return own
    names = {server.name for server in own}
    fresh = tuple(replace(server, trust_read_only=False) for server in found if server.name not in names)
    if not fresh or await gate.refusal(_question(project, fresh, gate)) is not None:
        return own
    return (*own, *(_in_project(server, project) for server in fresh))


def _in_project(server: McpServer, project: Path) -> McpServer:
    return replace(server, cwd=str(project / (server.cwd or "")))


def preparation(
    project: Path,
    own: tuple[McpServer, ...],
    gate: Gate,
    pool: McpPool,
    registry: Registry,
    most_tokens: int | None = None,
    keep_image: KeepImage | None = None,
) -> Callable[[], Awaitable[None]] | None:
    """Return the step that starts MCP servers before a task begins. Return None if there are no servers.

    `most_tokens`: maximum number of tokens for the descriptions of all MCP tools. `keep_image` stores images where
    commands can read them.
    """
    if not own and not (project / PROJECT_FILE).is_file():
        return None

    async def prepare() -> None:
        servers = await agreed_servers(project, own, gate)
        taken = tuple(spec.name for spec in registry.specs)
        registry.add(await pool.tools(servers, gate, taken, most_tokens=most_tokens, keep_image=keep_image))

    return prepare


def _question(project: Path, servers: tuple[McpServer, ...], gate: Gate) -> ConfirmationRequest:
    return gate.question(
        ("start", *(repr(server) for server in servers)),
        f"MCP: {', '.join(server.name for server in servers)}",
        (f"$ {server.shown}" for server in servers),
        (("start", server.shown) for server in servers),
        str(project / PROJECT_FILE),
    )
