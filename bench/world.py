"""A world outside of a task's directory, whose tools an agent reaches as those of an MCP server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

from aiohttp import web


class ToolFailed(Exception):
    """Raised by a tool that says that it failed."""


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool of a world. `reads` is true if a call of it changes nothing there and tells no one anything."""

    name: str
    description: str
    schema: Mapping[str, object]
    reads: bool


class World(Protocol):
    """State that only tools reach. It belongs to one run of one task."""

    name: str

    def begin(self) -> Sequence[tuple[str, Mapping[str, object]]] | None:
        """Lay the state, and return the calls of a model that does all it is asked; None if there is no task."""
        ...

    def tools(self) -> Iterator[Offered]:
        """Yield the tools."""
        ...

    def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """Run a tool and return its output. Raises ToolFailed."""
        ...

    @property
    def answer(self) -> str:
        """Return the answer of a model that does all it is asked."""
        ...

    def wrong(self, answer: str) -> str:
        """Return what the benchmark finds wrong with the state and the answer, or ""."""
        ...


@asynccontextmanager
async def serving(world: World | None) -> AsyncGenerator[Mapping[str, object]]:
    """Serve a world as an MCP server, and give the entries of `mcpServers` that name it; none for no world."""
    if world is None:
        yield {}
        return

    async def answered(request: web.Request) -> web.Response:
        asked = cast("dict[str, Any]", await request.json())
        if "id" not in asked:
            return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **_result(world, asked)})

    app = web.Application()
    app.router.add_post("/mcp", answered)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        yield {world.name: {"url": url, "trustReadOnly": True}}
    finally:
        await runner.cleanup()


def _result(world: World, asked: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the result of one request, or the error that a server without this method answers with."""
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            server = {"name": world.name, "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": [_listed(tool) for tool in world.tools()]}}
        case "tools/call":
            try:
                text, failed = world.call(asked["params"]["name"], asked["params"].get("arguments") or {}), False
            except ToolFailed as error:
                text, failed = str(error), True
            return {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}
        case other:
            return {"error": {"code": -32601, "message": f"no method {other}"}}


def _listed(tool: Offered) -> Mapping[str, object]:
    hints = {"readOnlyHint": tool.reads}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": hints,
    }
