"""One odd tool or block of an MCP server costs nothing else, and a call that was made is never told as failed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, ListToolsResult

from artoo.tools.mcp.connection import McpConnection
from artoo.tools.mcp.servers import McpServer
from artoo.tools.mcp.tolerance import repaired_listing, repaired_result

PROGRAM = Path(__file__).with_name("odd_mcp_server.py")
NAMES = ("echo", "bare", "odd", "untyped", "reference", "nullable", "listed")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


async def asked(kind: str) -> tuple[tuple[str, ...], str, bool]:
    """Return the names of the tools, and the answer of one call with whether it is an error."""
    connection = McpConnection(McpServer("odd", command=(sys.executable, str(PROGRAM))), connect_seconds=30.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connection.run())
        try:
            tools = await connection.tools()
            answer = await connection.call("echo", {"kind": kind})
            return tuple(tool.name for tool in tools), answer.text, answer.is_error
        finally:
            running.cancel()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("plain", "heard"),
        ("resource", "[file:///y]\ninner\nheard"),
        ("link", "[file:///x: notes]\nheard"),
        ("unknown", '{"type": "video", "data": "abc"}\nheard'),
        ("list", '["a", 1]'),
        ("object", '{"said": "heard"}'),
        ("nothing", "(the tool returned no content)"),
        ("null", "(the tool returned no content)"),
        ("image", "[image, image/png, 3 bytes]"),
    ],
)
async def test_every_block_of_an_answer_is_shown(kind: str, said: str) -> None:
    """All tools with a name are offered, and the answer says all that the server sent."""
    assert await asked(kind) == (NAMES, said, False)


@given(st.dictionaries(st.sampled_from(["content", "structuredContent", "isError", "x"]), JSON))
def test_any_result_of_a_call_is_valid_after_the_repair(result: dict[str, object]) -> None:
    """Whatever JSON a server sends, the SDK's type takes it."""
    CallToolResult.model_validate(repaired_result(result), by_name=False)


@given(st.lists(JSON | st.dictionaries(st.sampled_from(["name", "inputSchema", "annotations", "icons"]), JSON)))
def test_any_listing_is_valid_after_the_repair(tools: list[object]) -> None:
    """Whatever JSON a server lists, the SDK's type takes it."""
    ListToolsResult.model_validate(repaired_listing({"tools": tools}), by_name=False)
