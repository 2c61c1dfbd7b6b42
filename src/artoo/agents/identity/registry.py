"""Register agents, and store their trust level, pause, retirement and accepted identity hash.

Reference: SPEC section 11.

Only the operator may change the registry, except that artoo itself stops an agent whose identity is not the
accepted one. When an agent is retired, the work that others can do is taken from it in the same transaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from artoo.agents.board.rows import ANYBODY, end_claim, give_to, interrupted, task_of
from artoo.agents.identity.folders import AgentFolder
from artoo.agents.identity.identity import Identity, digest, name_problem, read_identity
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Writing, made, storable
from artoo.contracts.agents import OPERATOR, RUNTIME, AgentChanged, BoardState, BoardTask, TrustLevel
from artoo.contracts.errors import ActorRefused, ConfigurationError, IdentityRefused
from artoo.contracts.roles import Role

RETIRED = "it is retired"
"""The reason why a retired agent may not work."""

_GIVEN_BACK = frozenset({BoardState.PENDING, BoardState.BLOCKED})


_Change = Literal["created", "trust", "paused", "resumed", "stopped", "accepted", "retired"]


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """The entry of an agent in the registry. `stopped`: the reason why the agent may not work until its identity is
    accepted. It is empty if it may work.

    `retired`: true if the operator has retired the agent. Its name and history are kept.
    """

    name: str
    trust: TrustLevel
    paused: bool
    stopped: str
    retired: bool
    identity_sha256: str | None
    created_at: datetime


class Registry(Stored):
    """The registry of all agents. Raises ActorRefused if anyone except the operator requests a change."""

    @writes
    def register(
        self,
        writing: Writing,
        name: str,
        actor: str,
        *,
        sha256: str | None = None,
        trust: TrustLevel = TrustLevel.PROBATION,
    ) -> AgentRecord:
        """Register a new agent. `sha256`: the digest of its accepted identity file. If it is None, the agent is
        stopped until an identity is accepted.

        An agent that is already registered is not changed. Raises ConfigurationError for an invalid name.
        """
        if problem := name_problem(name):
            raise ConfigurationError(problem)
        _operators(actor, "a new agent")
        new = writing.insert(
            "agents",
            once=True,
            name=name,
            trust=trust,
            stopped="" if sha256 else "its identity was never accepted",
            identity_sha256=sha256,
            created_at_us=writing.now_us,
            updated_at_us=writing.now_us,
        )
        if new:
            _record(writing, name, "created", actor, f"trust {trust.value}")
            if sha256:
                _record(writing, name, "accepted", actor, f"identity {sha256}")
        return _found(writing, name)

    @reads
    def get(self, reading: Reading, name: str) -> AgentRecord:
        """Return the entry of an agent. Raises ConfigurationError if there is none."""
        return _found(reading, name)

    @reads
    def list(self, reading: Reading) -> tuple[AgentRecord, ...]:
        """Return all agents, sorted by name."""
        return tuple(made(AgentRecord, row) for row in reading.all("SELECT * FROM agents ORDER BY name"))

    @writes
    def set_trust(self, writing: Writing, name: str, trust: TrustLevel, actor: str) -> AgentRecord:
        """Set the level of trust for the work that the agent does from now on."""
        before = _found(writing, name)
        _operators(actor, f"the trust in {name}")
        detail = f"{before.trust.value} -> {trust.value}"
        return _changed(writing, name, "trust", actor, detail, trust=trust)

    @writes
    def pause(self, writing: Writing, name: str, actor: str, reason: str = "") -> AgentRecord:
        """Pause the agent. It takes no new work, but may finish its current work."""
        before = _found(writing, name)
        _operators(actor, f"a pause of {name}")
        return before if before.paused else _changed(writing, name, "paused", actor, reason, paused=True)

    @writes
    def resume(self, writing: Writing, name: str, actor: str) -> AgentRecord:
        """Resume a paused agent. An agent that was stopped because of its identity stays stopped."""
        before = _found(writing, name)
        _operators(actor, f"the end of {name}'s pause")
        writing.arrived(name)
        return _changed(writing, name, "resumed", actor, "", paused=False) if before.paused else before

    @writes
    def retire(self, writing: Writing, name: str, actor: str, reason: str = "") -> tuple[str, ...]:
        """Retire an agent and take its work from it (`give_all_back`). Returns the ids of the tasks that were taken
        from it.

        Its name and history are kept. The call may be repeated to take work that the agent got in the meantime.
        """
        _operators(actor, f"the end of {name}")
        before = _found(writing, name)
        writing.change("agents", name, key="name", retired=True, stopped=RETIRED, updated_at_us=writing.now_us)
        given = give_all_back(writing, name, actor)
        if not before.retired or given:
            told = f"{len(given)} tasks given back"
            _record(writing, name, "retired", actor, f"{reason}; {told}" if reason else told)
        return given

    async def accept(self, folder: AgentFolder, actor: str) -> Identity:
        """Accept the identity file as it is now, on behalf of the operator. Raises ConfigurationError for an
        invalid file.

        If the agent was retired, it returns with its letters and memory, but not with the tasks that were taken
        from it.
        """
        identity = await asyncio.to_thread(read_identity, folder.identity, folder.name)
        await self._accept(folder.name, identity.sha256, actor)
        return identity

    @writes
    def _accept(self, writing: Writing, name: str, sha256: str, actor: str) -> None:
        before = _found(writing, name)
        _operators(actor, f"{name}'s identity")
        writing.arrived(name)
        back = "back from retirement; " if before.retired else ""
        detail = f"{back}identity {before.identity_sha256 or 'none'} -> {sha256}"
        _changed(writing, name, "accepted", actor, detail, identity_sha256=sha256, stopped="", retired=False)

    async def load(self, folder: AgentFolder) -> Identity:
        """Load the identity of an agent when the agent starts. Raises ConfigurationError for an invalid file.

        Raises IdentityRefused if the identity is not the accepted one. The agent is then stopped until the operator
        accepts it.
        """
        # The digest is checked before the file is parsed, so that a file that was changed and is invalid also stops
        # the agent.
        await self.check(folder)
        identity = await asyncio.to_thread(read_identity, folder.identity, folder.name)
        await self._same(folder, identity.sha256)
        return identity

    async def check(self, folder: AgentFolder) -> None:
        """Check that the identity file is still the accepted one. It is called before each prompt that contains the
        identity.

        If the file is another one, the agent is stopped and IdentityRefused is raised. If only the copy on another
        machine differs, the agent is not stopped.
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
        if stopped := await self._stop(folder.name, found, why):
            raise _refused(folder, stopped)

    @writes
    def _stop(self, writing: Writing, name: str, found: str | None, why: str) -> str:
        before = _found(writing, name)
        if before.stopped or before.identity_sha256 == found:
            return before.stopped
        detail = f"{why}: {found or 'none'}, accepted {before.identity_sha256 or 'none'}"
        return _changed(writing, name, "stopped", RUNTIME, detail, stopped=why).stopped


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
        known = ", ".join(reading.names("SELECT name FROM agents ORDER BY name LIMIT 50"))
        raise ConfigurationError(
            f"There is no agent {name!r}; there are: {known or 'none'}. `artoo agent new {name}` makes it."
        )
    return made(AgentRecord, row)


def _changed(
    writing: Writing, name: str, change: _Change, actor: str, detail: str, **values: str | bool
) -> AgentRecord:
    writing.change("agents", name, key="name", **values, updated_at_us=writing.now_us)
    _record(writing, name, change, actor, detail)
    return _found(writing, name)


def _record(writing: Writing, name: str, change: _Change, actor: str, detail: str) -> None:
    changed = AgentChanged(agent=name, change=change, actor=actor, detail=storable(detail), at=writing.now)
    writing.emit(Role.BOARD, name, changed)


def give_all_back(writing: Writing, name: str, actor: str) -> tuple[str, ...]:
    """Take the current tasks and the current letter from an agent. Return the ids of the tasks.

    Its submissions remain in review under its name, and its unread letters remain unread.
    """
    rows = writing.all(
        "SELECT * FROM tasks WHERE state NOT IN ('completed', 'cancelled', 'archived')"
        " AND (assignee = :name OR reviewer = :name OR claimant = :name) ORDER BY queue",
        {"name": name},
        hold="wait",
    )
    given = [str(row["id"]) for row in rows if _given_back(writing, task_of(row), row["claimant"], name, actor)]
    writing.run(
        "UPDATE mails SET claim = NULL, holder = NULL, lease_us = NULL WHERE recipient = ? AND partition = 'inbox'"
        " AND claim IS NOT NULL AND id NOT IN (SELECT reply FROM waits WHERE reply IS NOT NULL)",
        (name,),
    )
    writing.arrived(ANYBODY)
    return tuple(given)


def _given_back(writing: Writing, task: BoardTask, claimant: str | None, name: str, actor: str) -> bool:
    """Take one task from an agent. Return True if the agent was the one that had to do the task. A process that
    works on the task loses its claim."""
    why = f"{name} is retired"
    if claimant == name and task.state is BoardState.IN_PROGRESS:
        task = interrupted(writing, task, why, actor=actor)
    elif claimant == name:
        end_claim(writing, task.id)
    if task.reviewer == name:
        give_to(writing, task, "reviewer", None, actor, why)
    if task.assignee != name:
        return False
    # An agent never resumes a run that another agent has begun.
    if task.state in _GIVEN_BACK:
        writing.change("tasks", task.id, open_to_all=True, run=None)
        give_to(writing, task, "assignee", None, actor, why)
        return True
    # The author of a submission in review remains recorded. If the work must be done again, any agent may take it.
    writing.change("tasks", task.id, open_to_all=True)
    return False
