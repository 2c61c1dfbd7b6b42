"""`artoo acp`, which serves one editor on standard input and output.

It ends when the editor disconnects or when a signal asks the process to end.
"""

from __future__ import annotations

from typing import cast

from acp.agent.connection import AgentSideConnection
from acp.interfaces import Agent

from artoo.protocols.acp.agent import EditorAgent
from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.intake import serving_intake
from artoo.protocols.looking import looking_at
from artoo.protocols.wire import standard_wire
from artoo.runtime.config.model import Config


async def serve(config: Config) -> None:
    """Serve on standard input and output. Raises ConfigurationError."""
    async with serving_intake(config) as intake:
        await until_asked_to_end(_serve(EditorAgent(intake, looking_at(config))))


async def _serve(agent: EditorAgent) -> None:
    # The library looks up each method by its name and accepts that some are missing.
    offered = cast(Agent, agent)
    async with standard_wire() as wire:
        connection = AgentSideConnection(offered, wire, listening=False, observers=[agent.told])
        try:
            await connection.listen()
        finally:
            await connection.close()
