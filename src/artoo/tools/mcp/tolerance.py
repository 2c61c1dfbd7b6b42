"""Repair invalid tool listings and call results of MCP servers.

One invalid tool or block therefore does not affect the others.

    SDK client ── request ──► [remembers its method] ──► server
               ◄── repaired ── [by the method] ◄──────── answer

The SDK accepts or rejects each answer only as a whole. Without a repair, one tool without an `inputSchema` would
hide all tools of its server. One unknown block would make a completed call look like a failure, so that a write
might be repeated.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.shared.message import SessionMessage

_MOST_OPEN = 1_000
"""Maximum number of requests whose method is remembered. The oldest are forgotten, because some are never
answered."""
_SHOWN_BLOCK = 4_000
"""Number of characters of JSON that are shown for a block of an unknown kind."""
_LIST, _CALL = "tools/list", "tools/call"
_NO_SCHEMA: Mapping[str, object] = {"type": "object"}


@asynccontextmanager
async def tolerant(transport: AbstractAsyncContextManager[TransportStreams]) -> AsyncGenerator[TransportStreams]:
    """Wrap a transport so that tool listings and call results conform to the protocol."""
    async with transport as (read, write):
        methods: dict[str, str] = {}
        yield _Reading(read, methods), _Writing(write, methods)


@dataclass(slots=True)
class _Ending:
    """A stream wrapper that closes the wrapped stream together with itself."""

    stream: ReadStream[SessionMessage | Exception] | WriteStream[SessionMessage]
    methods: dict[str, str] = field(default_factory=dict[str, str])

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        await self.stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self.stream.__aexit__(exc_type, exc_val, exc_tb)


class _Writing(_Ending):
    """A stream that remembers the method of each listing or call request that is sent."""

    __slots__ = ()

    async def send(self, item: SessionMessage, /) -> None:
        from mcp_types import JSONRPCRequest

        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in (_LIST, _CALL):
            self.methods[str(message.id)] = message.method
            if len(self.methods) > _MOST_OPEN:
                del self.methods[next(iter(self.methods))]
        await cast("WriteStream[SessionMessage]", self.stream).send(item)


class _Reading(_Ending):
    """A stream that repairs the answers to requests whose method was remembered."""

    __slots__ = ()

    async def receive(self) -> SessionMessage | Exception:
        return self._repaired(await cast("ReadStream[SessionMessage | Exception]", self.stream).receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._repaired(await cast("ReadStream[SessionMessage | Exception]", self.stream).__anext__())

    def _repaired(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        from mcp_types import JSONRPCResponse

        if isinstance(item, Exception) or not isinstance(item.message, JSONRPCResponse):
            return item
        method = self.methods.pop(str(item.message.id), None)
        if method is not None:
            repair = repaired_listing if method == _LIST else repaired_result
            item.message = item.message.model_copy(update={"result": repair(item.message.result)})
        return item


def repaired_listing(result: Mapping[str, object]) -> dict[str, object]:
    """Repair a `tools/list` result so that every tool that has a name is valid.

    An invalid tool is reduced to its name, description and input schema.
    """
    # Output schemas are removed, because the SDK would reject a result that does not fit its schema although the
    # call has run.
    listed = result.get("tools")
    tools = cast("list[object]", listed) if isinstance(listed, list) else []
    return {**result, "tools": [_tool(cast("dict[str, object]", one)) for one in tools if _has_name(one)]}


def _has_name(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(cast("dict[str, object]", tool).get("name"), str)


def _tool(offered: Mapping[str, object]) -> dict[str, object]:
    from mcp_types import Tool

    schema = offered.get("inputSchema")
    tool = {key: value for key, value in offered.items() if key != "outputSchema"}
    tool["inputSchema"] = _schema(cast("dict[str, object]", schema)) if isinstance(schema, dict) else _NO_SCHEMA
    try:
        Tool.model_validate(tool, by_name=False)
    except ValidationError:
        described = offered.get("description")
        kept = {"description": described} if isinstance(described, str) else {}
        return {"name": offered["name"], "inputSchema": tool["inputSchema"], **kept}
    return tool


def _schema(schema: dict[str, object]) -> dict[str, object]:
    """Convert a schema of arguments to an object schema with valid keywords, which all versions of the protocol
    require."""
    fitting = {**schema, "type": "object"}
    properties = fitting.pop("properties", None)
    if isinstance(properties, dict):
        named = cast("dict[str, object]", properties)
        fitting["properties"] = {name: one if isinstance(one, dict) else {} for name, one in named.items()}
    required = fitting.pop("required", None)
    if isinstance(required, list) and all(isinstance(one, str) for one in cast("list[object]", required)):
        fitting["required"] = required
    return fitting


def repaired_result(result: Mapping[str, object]) -> dict[str, object]:
    """Convert a `tools/call` result to a valid result with the same information."""
    # A block of an unknown kind is shown as JSON text. Structured content that is not an object is shown in the
    # same way.
    listed = result.get("content")
    content = [_block(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []
    repaired = {**result, "content": content, "isError": result.get("isError") is True}
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        del repaired["structuredContent"]
        repaired["content"] = [*content, _as_text(structured)]
    return repaired


def _block(block: object) -> object:
    try:
        _blocks().validate_python(block, by_name=False)
    except ValidationError:
        return _as_text(block)
    return block


@cache
def _blocks() -> TypeAdapter[object]:
    from mcp_types import ContentBlock

    return TypeAdapter(ContentBlock)


def _as_text(value: object) -> dict[str, object]:
    text = json.dumps(value, ensure_ascii=False)
    cut = f"{text[:_SHOWN_BLOCK]} … ({len(text)} characters)" if len(text) > _SHOWN_BLOCK else text
    return {"type": "text", "text": cut}
