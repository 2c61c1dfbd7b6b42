"""List the agents of a home, with trust level, stopped state, and reason, for `artoo agent list`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from artoo.agents.identity.folders import AgentFolder
from artoo.agents.identity.identity import digest
from artoo.agents.identity.registry import AgentRecord
from artoo.agents.patrol.parser import patrol_problems
from artoo.agents.patrol.store import script_problems
from artoo.team.office import Office

GONE = (
    "its folder is gone: put agents/{name} back and accept it (artoo agent accept {name}), make it anew"
    " (artoo agent new {name}), or end it (artoo agent retire {name})"
)
KEPT = "what it left is kept; artoo agent accept {name} takes it back"


class AgentStatus(StrEnum):
    """The status of an agent. `NOT_ACCEPTED`: the identity on disk is not the one that the operator has
    accepted."""

    READY = "ready"
    PAUSED = "paused"
    STOPPED = "stopped"
    NOT_ACCEPTED = "not accepted"
    FOLDER_GONE = "folder gone"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Listed:
    """An agent, as `artoo agent list` shows it. `trust`: its level of trust. It is None if the operator has not
    accepted the agent yet. `detail`: the reason why it cannot work."""

    name: str
    trust: str | None
    state: AgentStatus
    detail: str = ""


async def roster(office: Office) -> tuple[list[Listed], list[str]]:
    """Return all agents. Also return the problems with their folders and routines, which the agents do not report
    themselves."""
    found = await asyncio.to_thread(office.folders)
    records = {record.name: record for record in await office.registry.list()}
    agents = [await asyncio.to_thread(_on_disk, folder, records.pop(folder.name, None)) for folder in found.agents]
    agents += [_without_folder(record, shared=bool(office.machine)) for record in records.values()]
    retired = {each.name for each in agents if each.state is AgentStatus.RETIRED}
    gone = (name for name, record in records.items() if not (record.retired or office.machine))
    problems = [*found.problems, *(f"{name}: {GONE.format(name=name)}" for name in gone)]
    for folder in found.agents:
        if folder.name not in retired:
            problems += await asyncio.to_thread(patrol_problems, folder.heartbeat)
    ready = {each.name for each in agents if each.state is AgentStatus.READY}
    failing = await script_problems(office.database, str(office.routine), ready)
    problems += [f"{office.routine} ({', '.join(whose)}): {problem}" for problem, whose in failing.items()]
    return agents, problems


def listed(record: AgentRecord) -> Listed:
    """Return an agent as the registry describes it."""
    if record.retired:
        return Listed(record.name, record.trust.value, AgentStatus.RETIRED, KEPT.format(name=record.name))
    state = AgentStatus.STOPPED if record.stopped else AgentStatus.PAUSED if record.paused else AgentStatus.READY
    why = f"{record.stopped}; artoo agent accept {record.name}" if record.stopped else ""
    return Listed(record.name, record.trust.value, state, why)


def _on_disk(folder: AgentFolder, record: AgentRecord | None) -> Listed:
    """Compare the identity on disk with the accepted one. This does not wait until a heartbeat does it. Blocks."""
    if record is not None and (record.retired or digest(folder.identity) == record.identity_sha256):
        return listed(record)
    trust, why = None, ""
    if record is not None:
        trust, why = record.trust.value, f"{record.stopped or 'its identity was changed since it was accepted'}; "
    how = f"{why}read {folder.identity}, then: artoo agent accept {folder.name}"
    return Listed(folder.name, trust, AgentStatus.NOT_ACCEPTED, how)


def _without_folder(record: AgentRecord, *, shared: bool) -> Listed:
    """Return an agent that has no folder here. `shared`: true if another machine may have the folder."""
    if record.retired:
        return listed(record)
    if shared:
        here = listed(record)
        return Listed(here.name, here.trust, here.state, here.detail or "its folder is on another machine")
    return Listed(record.name, record.trust.value, AgentStatus.FOLDER_GONE, GONE.format(name=record.name))
