"""A connection to one MCP server, with connect and call timeouts, starts, and the most tools.

If the server dies, hangs or sends too much, only the calls to this server fail.

call ──► ready? ──► client.call_tool, bounded in time
           └──► started at most twice; a call that was lost is never repeated automatically
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

from artoo.contracts.errors import ToolError
from artoo.tools.mcp.pipes import piped
from artoo.tools.mcp.servers import McpServer
from artoo.tools.mcp.tolerance import tolerant

if TYPE_CHECKING:
    from httpx2 import Auth
    from mcp import Client
    from mcp_types import CallToolResult, ContentBlock, Tool

T = TypeVar("T")

CONNECT_SECONDS = 20.0
CALL_SECONDS = 60.0
MOST_STARTS = 2
MOST_TOOLS = 64
"""Maximum number of tools of one server that are offered, because every prompt contains them. The first ones are
used."""
MOST_COUNTED = 1_000
"""Maximum number of tools that are requested from one server. It is higher, so that the number of tools that are
not offered is known."""
KEPT_OUTPUT = 256 * 1024
"""Maximum number of characters of one answer that are passed on."""
_UNAUTHORIZED = 401
_LIBRARY = ("mcp.client", "mcp.shared", "client")
"""Names of the loggers of the SDK's client."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """The answer of a tool: its text (shortened if it is very long), and whether the server marked it as an
    error."""

    text: str
    total_characters: int
    is_error: bool = False
    images: tuple[tuple[str, bytes], ...] = ()
    """Media type and content of each image."""


class McpConnection:
    """Runs one server while `run` is running. The first call starts the server."""

    def __init__(
        self,
        server: McpServer,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        call_seconds: float = CALL_SECONDS,
        auth: Auth | None = None,
    ) -> None:
        self.server = server
        self._auth = auth
        self.call_seconds = call_seconds
        self._connect_seconds = connect_seconds
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._down = asyncio.Event()
        self._client: Client | None = None
        self._tools: tuple[Tool, ...] = ()
        self.tools_there = 0
        """Number of tools that the server has listed, at most `MOST_COUNTED`."""
        self.has_resources = False
        self._status = 0
        self._starts = 0
        self._problem = "it was not started"

    async def run(self) -> None:
        """Start the server when a call needs it, at most twice. It ends only by cancellation."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._starts += 1
            self._down.clear()
            await self._life()

    async def tools(self, most: int | None = MOST_TOOLS) -> tuple[Tool, ...]:
        """Return at most `most` tools of the server, or all if `most` is None. Raises ToolError if the server is
        not available."""
        await self._ready()
        if most is not None and len(self._tools) > most:
            more = " or more" * (self.tools_there == MOST_COUNTED)
            said = "the MCP server %s has %d%s tools; the first %d are offered"
            logger.warning(said, self.server.name, self.tools_there, more, most)
        return self._tools[:most]

    async def list_resources(self) -> McpAnswer:
        """List the server's resources and resource templates, one per line. Raises ToolError as `call` does."""
        listed = await self._bounded(lambda client: client.list_resources())
        templates = await self._bounded(lambda client: client.list_resource_templates())
        lines = [f"{one.uri}: {one.description or one.name}" for one in listed.resources]
        lines += [f"{one.uri_template}: {one.description or one.name}" for one in templates.resource_templates]
        return _bounded_text("\n".join(lines) or "(no resources)")

    async def read_resource(self, uri: str) -> McpAnswer:
        """Read a resource. Binary parts of it are named but not returned. Raises ToolError as `call` does."""
        from mcp_types import TextResourceContents

        read = await self._bounded(lambda client: client.read_resource(uri))
        parts = [
            one.text if isinstance(one, TextResourceContents) else f"[{one.uri}: binary, {one.mime_type}]"
            for one in read.contents
        ]
        return _bounded_text("\n".join(parts))

    async def prompts(self) -> tuple[tuple[str, str], ...]:
        """Return name and description of the server's prompts. Raises ToolError as `call` does."""
        await self._ready()
        found = await self._bounded(lambda client: client.list_prompts())
        return tuple((one.name, one.description or "") for one in found.prompts)

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        """Return the text of a prompt with these arguments. Raises ToolError as `call` does."""
        found = await self._bounded(lambda client: client.get_prompt(name, dict(arguments)))
        return "\n\n".join(_shown(message.content) for message in found.messages)

    async def call(self, name: str, arguments: Mapping[str, object]) -> McpAnswer:
        """Make one call. If the server dies, hangs or breaks the protocol, it is ended and ToolError is raised."""
        return _answer(await self._bounded(lambda client: client.call_tool(name, dict(arguments))))

    async def _bounded(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request to the server, with a time limit of `call_seconds`. Raises ToolError as `call` does."""
        client = await self._ready()
        try:
            async with asyncio.timeout(self.call_seconds):
                return await ask(client)
        except TimeoutError as error:
            self._lose(f"it did not answer within {self.call_seconds:g} s")
            raise self._failed(self._problem) from error
        except Exception as error:
            # The SDK raises its own errors and those of anyio and pydantic. A call handles all of them in the same
            # way.
            if _is_refusal(error):
                raise self._failed(str(error)) from error
            if self._client is client:
                self._lose(str(error) or type(error).__name__)
            raise self._failed(self._problem) from error

    async def _ready(self) -> Client:
        if self._client is None:
            if self._starts >= MOST_STARTS:
                raise self._failed(f"{self._problem}; it was started {MOST_STARTS} times and is left alone now")
            self._settled.clear()
            self._wanted.set()
            await self._settled.wait()
        if self._client is None:
            raise self._failed(self._problem)
        return self._client

    async def _life(self) -> None:
        """Run the server from one start to its end."""
        try:
            async with asyncio.timeout(self._connect_seconds) as limit, self._connected() as client:
                there = await _listed(client)
                self._tools, self.tools_there = there, len(there)
                self.has_resources = client.server_capabilities.resources is not None
                limit.reschedule(None)
                self._client = client
                self._settled.set()
                await self._down.wait()
        except TimeoutError:
            self._problem = f"it was not ready within {self._connect_seconds:g} s"
        except Exception as error:  # noqa: BLE001  # a foreign program behind a foreign library: any failure is its end
            if not self._down.is_set():
                self._problem = _first(error)
            if self._status == _UNAUTHORIZED:
                self._problem = f"it wants a login: artoo mcp login {self.server.name} (or a header with a token)"
        finally:
            self._client = None
            if not self._wanted.is_set():
                self._settled.set()

    def _lose(self, why: str) -> None:
        """End the server, because it can no longer be used."""
        self._problem = why
        self._client = None
        self._down.set()

    def _failed(self, why: str) -> ToolError:
        return ToolError(f"the MCP server {self.server.name}: {why}")

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Client]:
        from mcp import Client

        _quieten()
        server = self.server
        if server.url is None:
            async with Client(tolerant(piped(server, self._lose)), cache=None) as client:
                yield client
            return
        from mcp.client.streamable_http import streamable_http_client

        from artoo.tools.mcp.bounded import bounded_client
        from artoo.tools.mcp.oauth import provider

        def note(status: int) -> None:
            self._status = status

        async with (
            bounded_client(server.headers, self._auth or provider(server), note) as http,
            Client(tolerant(streamable_http_client(server.url, http_client=http)), cache=None) as client,
        ):
            yield client


async def ask_once(
    server: McpServer,
    ask: Callable[[McpConnection], Awaitable[T]],
    *,
    seconds: float = CONNECT_SECONDS,
    auth: Auth | None = None,
) -> T:
    """Start a server, send it one request, and end it. Raises ToolError."""
    connection, found, problem = McpConnection(server, connect_seconds=seconds, auth=auth), list[T](), None
    async with asyncio.TaskGroup() as group:
        running = group.create_task(connection.run())
        try:
            found.append(await ask(connection))
        except ToolError as error:  # an error raised outside of the task group is not wrapped in an exception group
            problem = error
        finally:
            running.cancel()
    if problem is not None:
        raise problem
    return found[0]


@cache
def _quieten() -> None:
    """Silence the loggers of the SDK, because the error of the call already reports the problem. Without configured
    logging, the terminal would show a traceback of the SDK for each message before that error.
    """
    for name in _LIBRARY:
        logging.getLogger(name).addHandler(logging.NullHandler())


async def _listed(client: Client) -> tuple[Tool, ...]:
    """List all tools, page by page, up to the limit."""
    # A page without a new tool counts as the last one, because some servers repeat their pages endlessly.
    found: dict[str, Tool] = {}
    cursor: str | None = None
    while len(found) < MOST_COUNTED:
        page = await client.list_tools(cursor=cursor)
        before = len(found)
        for tool in page.tools:
            found.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None or len(found) == before:
            break
    return tuple(found.values())[:MOST_COUNTED]


def _answer(result: CallToolResult) -> McpAnswer:
    from mcp_types import ImageContent

    parts = [_shown(one) for one in result.content]
    if result.structured_content is not None and not _says(parts, result.structured_content):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    images = [(one.mime_type, one.data) for one in result.content if isinstance(one, ImageContent)]
    answer = _bounded_text("\n".join(parts) or "(the tool returned no content)")
    read = tuple((kind, image) for kind, data in images if (image := _decoded(data)) is not None)
    return replace(answer, is_error=result.is_error, images=read)


def _says(parts: Sequence[str], structured: object) -> bool:
    """True if a text part already contains the structured content. Servers send it twice for the sake of older
    clients."""
    for part in parts:
        try:
            said: object = json.loads(part)
        except ValueError:
            said = part
        # A tool whose result is not an object sends `{"result": value}`, in addition to the value as text.
        if structured in (said, {"result": said}):
            return True
    return False


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _bounded_text(text: str) -> McpAnswer:
    return McpAnswer(text[:KEPT_OUTPUT], len(text))


def _shown(block: ContentBlock) -> str:
    """Write a content block as text: its text, its address, or else its kind and size."""
    from mcp_types import (
        AudioContent,
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )

    match block:
        case TextContent():
            return block.text
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[{resource.uri}]\n{resource.text}"
        case EmbeddedResource():
            return f"[{block.resource.uri}: binary]"
        case ResourceLink():
            return f"[{block.uri}: {block.name}]"
        case ImageContent() | AudioContent():
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"


def _is_refusal(error: Exception) -> bool:
    """Check whether an error only refuses this call, so that the server can still be used."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.error.code != CONNECTION_CLOSED


def _first(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return str(error) or type(error).__name__
