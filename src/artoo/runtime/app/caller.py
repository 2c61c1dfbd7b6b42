"""The description of the program that starts a task, and the way in which its user is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.contracts.recording import AskedBy
from artoo.ports.confirm import Confirm

if TYPE_CHECKING:
    from artoo.tools.mcp.servers import McpServer


@dataclass(frozen=True, slots=True)
class Caller:
    """The program that starts a task.

    `confirm` asks the user of that program. If it is None, no user can be asked, and changes that need approval
    stay pending. `servers`: MCP servers that the user has configured in that program. They are used in addition to
    artoo's own.
    """

    asked_by: AskedBy
    confirm: Confirm | None = None
    servers: tuple[McpServer, ...] = ()
