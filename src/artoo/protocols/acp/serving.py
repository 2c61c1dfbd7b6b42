"""`artoo acp`: one runtime, one intake, one editor, until it leaves or the process is asked to end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from acp.agent.connection import AgentSideConnection
from acp.interfaces import Agent

from artoo.protocols.acp.agent import EditorAgent
from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.handed import Fetching
from artoo.protocols.intake import open_intake
from artoo.protocols.json_lines import INVALID_REQUEST, JsonLines
from artoo.protocols.looking import looking_at
from artoo.protocols.standard_streams import standard_wire
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.model import Config


async def serve(config: Config) -> None:
    """Serves on standard input and output. Raises ConfigurationError."""
    fetching = Fetching()
    async with Artoo(config, on_fetch=fetching) as artoo, open_intake(artoo, config, fetching) as intake:
        await until_asked_to_end(_serve(EditorAgent(intake, looking_at(config))))


async def _serve(agent: EditorAgent) -> None:
    offered = cast(Agent, agent)  # the library looks each method up by its name, and need not find all
    async with standard_wire() as wire:
        transport = BoundedTransport(JsonLines(wire))
        connection = AgentSideConnection(offered, transport, listening=False, observers=[agent.told])
        try:
            await connection.listen()
        finally:
            await connection.close()


MOST_OPEN = 64
"""Requests that wait for an answer at the same time."""


@dataclass(slots=True)
class BoundedTransport:
    """Implements `acp` Transport. A client that asks faster than it reads answers is not read on meanwhile."""

    lines: JsonLines
    _open: set[object] = field(default_factory=set[object])

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end, also when nobody reads answers any more."""
        await asyncio.sleep(0)  # what has come is begun before more is read
        with suppress(ConnectionError):
            while (message := await self.lines.receive()) is not None:
                if "method" not in message or "id" not in message:
                    return message
                if len(self._open) < MOST_OPEN:
                    self._open.add(message["id"])
                    return message
                why = {"code": INVALID_REQUEST, "message": f"{MOST_OPEN} requests wait for their answers already"}
                await self.lines.send({"jsonrpc": "2.0", "id": message["id"], "error": why})
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """A reader that is gone ends nothing here: its end is noticed where it is read."""
        if "method" not in message:
            self._open.discard(message.get("id"))
        with suppress(ConnectionError):
            await self.lines.send(message)

    async def close(self) -> None:
        """The wire is closed by whoever opened it."""
