"""`artoo doctor` on MCP servers, agents' identities and HEARTBEAT.md, which otherwise fail only at use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from artoo.cli.doctor.checks import Diagnosis, State
from artoo.contracts.errors import ArtooError, ConfigurationError

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config


def servers(config: Config) -> list[Diagnosis]:
    """Check the settings of the MCP servers, and whether their programs exist."""
    from artoo.runtime.app.mcp import own_servers

    try:
        known = own_servers(config)
    except ConfigurationError as error:
        return [Diagnosis("mcp", State.FAIL, str(error), "correct what is named")]
    missing = [one for one in known if one.command and one.program() is None]
    if missing:
        named = ", ".join(f"{one.name} ({one.command[0]})" for one in missing)
        remedy = "install them, or: artoo mcp remove NAME"
        return [Diagnosis("mcp", State.WARN, f"programs that are not there: {named}", remedy)]
    names = ", ".join(one.name for one in known)
    return [Diagnosis("mcp", State.OK, f"{names} (artoo mcp test starts them)")] if known else []


async def team(config: Config) -> list[Diagnosis]:
    """Check the standing agents for changed identities, and for mistakes in their HEARTBEAT.md."""
    from artoo.agents.identity.folders import FOLDER

    if not (config.home / FOLDER).is_dir():
        return []
    try:
        return [finding async for finding in _agents(config)]
    except ArtooError as error:
        return [Diagnosis("agents", State.FAIL, str(error), "correct what is named")]


async def _agents(config: Config) -> AsyncGenerator[Diagnosis]:
    from artoo.team.office import open_office
    from artoo.team.roster import AgentStatus, roster

    async with open_office(config) as office:
        agents, problems = await roster(office)
    for each in agents:
        if each.state in (AgentStatus.FOLDER_GONE, AgentStatus.RETIRED):
            # The problems below mention a missing folder too, together with a remedy.
            continue
        ready = each.state in (AgentStatus.READY, AgentStatus.PAUSED)
        detail = each.state + (f": {each.detail}" if each.detail else "")
        yield Diagnosis(f"agent {each.name}", State.OK if ready else State.WARN, detail)
    remedy = "do what it says, or correct the file; a running artoo serve reads it again"
    for problem in problems:
        yield Diagnosis("agents", State.WARN, problem, remedy)
