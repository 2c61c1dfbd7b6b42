"""An editor for tests: the ACP library's own client, over pipes, to an `artoo acp` that is a real process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    Implementation,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
    UserMessageChunk,
)
from hosting import Place

T = TypeVar("T")
LIMIT = 1 << 24


@dataclass(slots=True)
class Editor:
    """Remembers what it is told, and gives one answer to every question; None: it gives none, ever."""

    says: str | None = "apply"
    updates: list[object] = field(default_factory=list[object])
    asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = field(
        default_factory=list[tuple[ToolCallUpdate, list[PermissionOption]]]
    )
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        async with self._news:
            self.updates.append(update)
            self._news.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        async with self._news:
            self.asked.append((tool_call, options))
            self._news.notify_all()
        if self.says is None:
            await asyncio.Event().wait()
        if self.says == "":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=str(self.says)))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns when something that was told makes it true."""
        async with self._news:
            await self._news.wait_for(holds)

    def of(self, kind: type[T]) -> list[T]:
        """The updates of one kind."""
        return [each for each in self.updates if isinstance(each, kind)]

    def said(self, kind: type[AgentMessageChunk] | type[UserMessageChunk] = AgentMessageChunk) -> str:
        """All text of artoo's messages, or of the person's."""
        blocks = [each.content for each in self.of(kind)]
        return "\n".join(block.text for block in blocks if isinstance(block, TextContentBlock))


@dataclass(slots=True)
class Connected:
    """An editor and its agent."""

    agent: ClientSideConnection
    process: asyncio.subprocess.Process

    def hang_up(self) -> None:
        """Both pipes are closed at once, as when an editor is killed."""
        process = cast(Any, self.process)
        transport: asyncio.SubprocessTransport = process._transport
        for number in (0, 1):
            pipe = transport.get_pipe_transport(number)
            assert pipe is not None
            pipe.close()


@asynccontextmanager
async def connected(place: Place, editor: Editor) -> AsyncGenerator[Connected]:
    """After the handshake. At the end standard input is closed, and artoo ends well."""
    process = await asyncio.create_subprocess_exec(
        *place.command("acp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=place.environ,
        limit=LIMIT,
    )
    assert process.stdin is not None and process.stdout is not None
    agent = ClientSideConnection(cast(Client, editor), process.stdin, process.stdout)
    try:
        told = await agent.initialize(protocol_version=1, client_info=Implementation(name="the-test", version="7"))
        assert told.protocol_version == 1
        assert told.agent_capabilities is not None and told.agent_capabilities.load_session
        yield Connected(agent, process)
    finally:
        await agent.close()
        process.stdin.close()
        assert await process.wait() == 0
