"""`artoo acp`: one runtime, one intake, one editor, until it leaves or the process is asked to end."""

from __future__ import annotations

from typing import cast

from acp.agent.connection import AgentSideConnection
from acp.interfaces import Agent

from artoo.protocols.acp.agent import EditorAgent
from artoo.protocols.acp.transport import BoundedTransport
from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.handed import Fetching
from artoo.protocols.intake import open_intake
from artoo.protocols.json_lines import JsonLines
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
