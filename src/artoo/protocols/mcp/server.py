"""The MCP server's instructions, its tools with hints (read-only, destructive), and its resources."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, Tool, ToolAnnotations

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.protocols.intake import Intake
from artoo.protocols.looking import Looking, looking_at
from artoo.protocols.mcp.tools import Tools
from artoo.redaction import Redactor
from artoo.runtime.task.task_header import own_version

T = TypeVar("T")

INSTRUCTIONS = (
    "artoo does tasks on this machine and checks its work. Hand it a task with `run`, in plain words. It works on "
    "a copy of the files: what needs consent is not in effect until it is applied. A result with the status "
    "`pending` has changes that wait: show the person what `diff` says, and `apply` or `discard` as they decide. "
    "A task that takes longer than the call goes on; ask `result` for it."
)

_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WORKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
_SETTLES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)
_LATEST = 50


class _Server(MCPServer[Any]):
    """The server of the SDK, except that an unknown argument is an error. The SDK would ignore it, for example if
    the name of a budget is misspelt.

    `clean` redacts secrets in errors. The reports of the tools are redacted already.
    """

    def __init__(self, clean: Redactor, **given: Any) -> None:
        super().__init__("artoo", **given)
        self._clean = clean

    async def list_tools(self) -> list[Tool]:
        return [
            one.model_copy(update={"input_schema": {**one.input_schema, "additionalProperties": False}})
            for one in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            unknown = sorted(set(arguments) - set(known))
            if tool.name == name and unknown:
                raise ToolError(f"{name} has no {', '.join(unknown)}; it takes: {', '.join(known) or 'nothing'}")
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            # The text of this error has no details, and the SDK logs its cause.
            raise
        except ToolError as error:
            raise ToolError(self._clean.text(str(error))) from error


def made_server(intake: Intake, project: Path) -> MCPServer[Any]:
    """Build the server for one intake. `project`: the directory in which tasks work by default."""
    looking = looking_at(intake.config)
    tools = Tools(intake, looking, project)
    server = _Server(
        looking.clean, title="artoo", version=own_version(), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    for hint, offered in (
        (_WORKS, (tools.run, tools.resume, tools.send, tools.cancel)),
        (_LOOKS, (tools.status, tools.result, tools.diff, tools.recall, tools.audit)),
        (_SETTLES, (tools.apply, tools.discard, tools.undo)),
    ):
        for tool in offered:
            server.add_tool(tool, annotations=hint, structured_output=True)
    _add_resources(server, intake, looking)
    return server


def _add_resources(server: MCPServer[Any], intake: Intake, looking: Looking) -> None:
    async def found(looked: Awaitable[T]) -> T:
        try:
            return await looked
        except ConfigurationError as error:
            raise ResourceNotFoundError(looking.clean.text(str(error))) from error
        except ArtooError as error:
            raise ResourceError(looking.clean.text(str(error))) from error

    @server.resource("artoo://tasks", name="tasks", description="The latest tasks", mime_type="application/json")
    async def tasks() -> str:
        latest = await asyncio.to_thread(looking.latest, _LATEST, intake.running())
        return json.dumps([one.model_dump(mode="json") for one in latest], ensure_ascii=False)

    @server.resource(
        "artoo://tasks/{task_id}/log",
        name="log",
        description="All that was said in a task, a JSON object a line",
        mime_type="application/x-ndjson",
    )
    async def log(task_id: str) -> str:
        return await found(asyncio.to_thread(looking.log, task_id))

    @server.resource(
        "artoo://tasks/{task_id}/diff",
        name="diff",
        description="All that a task would change",
        mime_type="text/plain",
    )
    async def diff(task_id: str) -> str:
        pending = await found(asyncio.to_thread(looking.pending, task_id))
        return await found(looking.whole_difference(pending))

    # The server keeps these functions. This line only marks their names as used.
    del tasks, log, diff
