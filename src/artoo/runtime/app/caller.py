"""Who asks for a task, when that is another program: what it calls itself, and how its person is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.contracts.recording import AskedBy
from artoo.ports.confirm import Confirm

if TYPE_CHECKING:
    from artoo.tools.mcp.servers import McpServer


@dataclass(frozen=True, slots=True)
class Caller:
    """`confirm` asks the person at the other end; None: nobody can be asked there, and what needs a yes waits.

    `servers`: MCP servers that the person has configured there, beside artoo's own.
    """

    asked_by: AskedBy
    confirm: Confirm | None = None
    servers: tuple[McpServer, ...] = ()
