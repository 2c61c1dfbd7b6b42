"""What doctor says about MCP servers and standing agents: what is silent until somebody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from artoo.cli.doctor.checks import Finding, State
from artoo.contracts.errors import ArtooError, ConfigurationError

if TYPE_CHECKING:
    from artoo.runtime.config.model import Config


def servers(config: Config) -> list[Finding]:
    """The MCP servers: whether their settings can be read, and whether their programs are there."""
    from artoo.runtime.app.mcp import own_servers

    try:
        known = own_servers(config)
    except ConfigurationError as error:
        return [Finding("mcp", State.FAIL, str(error), "correct what is named")]
    missing = [one for one in known if one.command and one.program() is None]
    if missing:
        named = ", ".join(f"{one.name} ({one.command[0]})" for one in missing)
        remedy = "install them, or: artoo mcp remove NAME"
        return [Finding("mcp", State.WARN, f"programs that are not there: {named}", remedy)]
    names = ", ".join(one.name for one in known)
    return [Finding("mcp", State.OK, f"{names} (artoo mcp test starts them)")] if known else []


async def team(config: Config) -> list[Finding]:
    """The standing agents: identities that are not the accepted ones, and mistakes in their HEARTBEAT.md."""
    from artoo.agents.identity.folders import FOLDER

    if not (config.home / FOLDER).is_dir():
        return []
    try:
        return [finding async for finding in _agents(config)]
    except ArtooError as error:
        return [Finding("agents", State.FAIL, str(error), "correct what is named")]


async def _agents(config: Config) -> AsyncGenerator[Finding]:
    from artoo.agents.patrol.parser import patrol_problems
    from artoo.cli.commands.agent_command import FOLDER_GONE, RETIRED, listed
    from artoo.team.office import open_office

    async with open_office(config) as office:
        rows, problems = await listed(office)
        folders = (await asyncio.to_thread(office.folders)).agents
    retired = {row.name for row in rows if row.state == RETIRED}
    for row in rows:
        if row.state in (FOLDER_GONE, RETIRED):
            continue  # told below, with what can be done; or nothing is to be done
        ready = row.state in ("ready", "paused")
        detail = row.state + (f": {row.detail}" if row.detail else "")
        remedy = "" if ready else f"read its identity, then: artoo agent accept {row.name}"
        yield Finding(f"agent {row.name}", State.OK if ready else State.WARN, detail, remedy)
    for problem in problems:
        yield Finding("agents", State.WARN, problem, "mend it, or remove the folder")
    for folder in (one for one in folders if one.name not in retired):
        for problem in await asyncio.to_thread(patrol_problems, folder.heartbeat):
            remedy = "correct the file; a running artoo serve reads it anew"
            yield Finding(f"patrol {folder.name}", State.WARN, problem, remedy)
