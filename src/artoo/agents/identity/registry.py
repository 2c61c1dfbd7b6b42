"""The register of agents: trust, pauses, and the identity that the operator accepted for each (SPEC section 11).

All changes are the operator's, except that artoo itself stops an agent whose identity is not the accepted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from artoo.agents.identity.folders import AgentFolder
from artoo.agents.identity.identity import Identity, digest, read_identity
from artoo.agents.identity.names import name_problem
from artoo.agents.identity.retire import RETIRED, give_all_back
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Reading, Row, Writing, storable
from artoo.contracts.agents import OPERATOR, RUNTIME, AgentChanged, TrustLevel
from artoo.contracts.errors import ActorRefused, ConfigurationError, IdentityRefused
from artoo.contracts.roles import Role

_Change = Literal["created", "trust", "paused", "resumed", "stopped", "accepted", "retired"]


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent as the register has it. `stopped`: why it may not work until its identity is accepted, or empty.

    `retired`: the operator has ended it; its name and its history stay.
    """

    name: str
    trust: TrustLevel
    paused: bool
    stopped: str
    retired: bool
    identity_sha256: str | None
    created_at: datetime


class Registry:
    """Who is there. Raises ActorRefused when somebody else than the operator asks for a change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(
        self, name: str, actor: str, *, sha256: str | None = None, trust: TrustLevel = TrustLevel.PROBATION
    ) -> AgentRecord:
        """Enters a new agent. `sha256`: its accepted identity; None: it is stopped until one is accepted.

        An agent that is known already stays as it is. Raises ConfigurationError for a name that is not allowed.
        """
        if problem := name_problem(name):
            raise ConfigurationError(problem)

        def work(writing: Writing) -> AgentRecord:
            _operators(actor, "a new agent")
            stopped = "" if sha256 else "its identity was never accepted"
            new = writing.run(
                "INSERT INTO agents (name, trust, stopped, identity_sha256, created_at_us, updated_at_us)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
                (name, trust.value, stopped, sha256, writing.now_us, writing.now_us),
            )
            if new:
                _record(writing, name, "created", actor, f"trust {trust.value}")
                if sha256:
                    _record(writing, name, "accepted", actor, f"identity {sha256}")
            return _found(writing, name)

        return await self._database.write(work)

    async def get(self, name: str) -> AgentRecord:
        """Raises ConfigurationError when there is no such agent."""
        return await self._database.read(lambda reading: _found(reading, name))

    async def list(self) -> tuple[AgentRecord, ...]:
        """All agents by name."""
        return await self._database.read(
            lambda reading: tuple(map(_record_of, reading.all("SELECT * FROM agents ORDER BY name")))
        )

    async def set_trust(self, name: str, trust: TrustLevel, actor: str) -> AgentRecord:
        """How far the agent's own work goes from now on."""

        def change(writing: Writing, before: AgentRecord) -> None:
            _operators(actor, f"the trust in {name}")
            writing.run("UPDATE agents SET trust = ? WHERE name = ?", (trust.value, name))
            _record(writing, name, "trust", actor, f"{before.trust.value} -> {trust.value}")

        return await self._change(name, change)

    async def pause(self, name: str, actor: str, reason: str = "") -> AgentRecord:
        """The agent takes nothing new; what it works on it may finish."""

        def change(writing: Writing, before: AgentRecord) -> None:
            _operators(actor, f"a pause of {name}")
            if not before.paused:
                writing.run("UPDATE agents SET paused = TRUE WHERE name = ?", (name,))
                _record(writing, name, "paused", actor, reason)

        return await self._change(name, change)

    async def resume(self, name: str, actor: str) -> AgentRecord:
        """Ends a pause. An agent that is stopped for its identity stays so."""

        def change(writing: Writing, before: AgentRecord) -> None:
            _operators(actor, f"the end of {name}'s pause")
            if before.paused:
                writing.run("UPDATE agents SET paused = FALSE WHERE name = ?", (name,))
                writing.arrived(name)
                _record(writing, name, "resumed", actor, "")

        return await self._change(name, change)

    async def retire(self, name: str, actor: str, reason: str = "") -> tuple[str, ...]:
        """Ends an agent: it does nothing more, and its work is given back (`retiring`); which tasks.

        Its name stays with its history. May be repeated: what it has got meanwhile is given back too.
        """

        def work(writing: Writing) -> tuple[str, ...]:
            _operators(actor, f"the end of {name}")
            before = _found(writing, name)
            writing.run(
                "UPDATE agents SET retired = TRUE, stopped = ?, updated_at_us = ? WHERE name = ?",
                (RETIRED, writing.now_us, name),
            )
            given = give_all_back(writing, name, actor)
            if not before.retired or given:
                told = f"{len(given)} tasks given back"
                _record(writing, name, "retired", actor, f"{reason}; {told}" if reason else told)
            return given

        return await self._database.write(work)

    async def accept(self, folder: AgentFolder, actor: str) -> Identity:
        """The operator has read the identity file and takes it as it is. Raises ConfigurationError: mistakes.

        Who was retired is back, with its letters and what it knows; tasks that were given back are not its again.
        """
        identity = await asyncio.to_thread(read_identity, folder.identity, folder.name)

        def change(writing: Writing, before: AgentRecord) -> None:
            _operators(actor, f"{folder.name}'s identity")
            writing.run(
                "UPDATE agents SET identity_sha256 = ?, stopped = '', retired = FALSE WHERE name = ?",
                (identity.sha256, folder.name),
            )
            writing.arrived(folder.name)
            before_hash = before.identity_sha256 or "none"
            back = "back from retirement; " if before.retired else ""
            _record(writing, folder.name, "accepted", actor, f"{back}identity {before_hash} -> {identity.sha256}")

        await self._change(folder.name, change)
        return identity

    async def load(self, folder: AgentFolder) -> Identity:
        """The agent's identity at its start. Raises ConfigurationError for a file with mistakes, IdentityRefused
        when it is not the one that was accepted: then the agent is stopped until the operator accepts."""
        await self.check(folder)
        identity = await asyncio.to_thread(read_identity, folder.identity, folder.name)
        await self._same(folder, identity.sha256)
        return identity

    async def check(self, folder: AgentFolder) -> None:
        """Before each prompt that is assembled from the identity: the file is still the accepted one.

        Raises IdentityRefused, and stops the agent, when it is not. A copy that is not it stops nobody.
        """
        await self._same(folder, await asyncio.to_thread(digest, folder.identity))

    async def _same(self, folder: AgentFolder, found: str | None) -> None:
        record = await self.get(folder.name)
        if record.stopped:
            raise _refused(folder, record.stopped)
        if found == record.identity_sha256 and found is not None:
            return
        why = "its identity file is gone" if found is None else "its identity file is not the accepted one"
        if folder.borrowed:
            raise IdentityRefused(f"Agent {folder.name}: {why} here; the copy is made anew, and work begun anew.")

        def change(writing: Writing, before: AgentRecord) -> None:
            if before.stopped or before.identity_sha256 == found:
                return
            writing.run("UPDATE agents SET stopped = ? WHERE name = ?", (why, folder.name))
            detail = f"{why}: {found or 'none'}, accepted {before.identity_sha256 or 'none'}"
            _record(writing, folder.name, "stopped", RUNTIME, detail)

        after = await self._change(folder.name, change)
        if after.stopped:
            raise _refused(folder, after.stopped)

    async def _change(self, name: str, change: Callable[[Writing, AgentRecord], None]) -> AgentRecord:
        def work(writing: Writing) -> AgentRecord:
            change(writing, _found(writing, name))
            writing.run("UPDATE agents SET updated_at_us = ? WHERE name = ?", (writing.now_us, name))
            return _found(writing, name)

        return await self._database.write(work)


def _refused(folder: AgentFolder, why: str) -> IdentityRefused:
    return IdentityRefused(
        f"Agent {folder.name} is stopped: {why} ({folder.identity})."
        f" Read the file, then accept it: artoo agent accept {folder.name}"
    )


def _operators(actor: str, what: str) -> None:
    if actor != OPERATOR:
        raise ActorRefused(f"{actor} may not decide about {what}: only the operator may.")


def _found(reading: Reading, name: str) -> AgentRecord:
    row = reading.one("SELECT * FROM agents WHERE name = ?", (name,), hold="wait")
    if row is None:
        known = [str(row["name"]) for row in reading.all("SELECT name FROM agents ORDER BY name LIMIT 50")]
        raise ConfigurationError(
            f"There is no agent {name!r}; there are: {', '.join(known) or 'none'}."
            f" `artoo agent new {name}` makes it."
        )
    return _record_of(row)


def _record_of(row: Row) -> AgentRecord:
    return AgentRecord(
        name=row["name"],
        trust=TrustLevel(row["trust"]),
        paused=bool(row["paused"]),
        stopped=row["stopped"],
        retired=bool(row["retired"]),
        identity_sha256=row["identity_sha256"],
        created_at=moment(row["created_at_us"]),
    )


def _record(writing: Writing, name: str, change: _Change, actor: str, detail: str) -> None:
    changed = AgentChanged(agent=name, change=change, actor=actor, detail=storable(detail), at=writing.now)
    writing.emit(Role.BOARD, name, changed)
