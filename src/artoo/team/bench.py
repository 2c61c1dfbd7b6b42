"""The shared services of a team's agents (board, mailbox, submissions, runtime), and the member record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from artoo.agents.identity.folders import AgentFolder
from artoo.agents.identity.identity import Identity, segments
from artoo.agents.identity.registry import Registry
from artoo.contracts.agents import OPERATOR, BoardTask
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.roles import Role
from artoo.loops.asking import StandingSegments
from artoo.ports.bus import Port
from artoo.ports.model import Tier
from artoo.prompts.segments import Segment
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import Budgets, RunOptions
from artoo.team.letters import Letters
from artoo.team.minds import Minds
from artoo.team.office import Office
from artoo.tools.builtin.mail import mail_tools
from artoo.tools.core.tool import Tool


@dataclass(frozen=True, slots=True)
class Member:
    """An agent with the identity that the operator accepted. Before each prompt, `registry` checks that the
    identity is still the accepted one."""

    folder: AgentFolder
    identity: Identity
    registry: Registry

    @property
    def name(self) -> str:
        """Return the agent's name."""
        return self.identity.name

    def standing(self, more: Mapping[Segment, str] | None = None) -> StandingSegments:
        """Return the segments that the agent adds to every prompt, and the segments `more`."""

        async def check() -> None:
            await self.registry.check(self.folder)

        given = {segment: text for segment, text in (more or {}).items() if text}
        own = {segment: text for segment, text in segments(self.identity).items() if text}
        return StandingSegments({**own, **given}, check)

    @property
    def tier(self) -> Tier | None:
        """Return the only tier of models that the agent may use. Return None if each role uses its own tier."""
        return None if self.identity.tier == "default" else Tier(self.identity.tier)

    @property
    def must_not(self) -> frozenset[str]:
        """Return the identities of the tools that the agent may not use."""
        return frozenset(self.identity.limits.must_not)

    @property
    def budgets(self) -> Budgets:
        """Return the budgets for one assignment."""
        limits = self.identity.limits
        return Budgets(seconds=limits.seconds, calls=limits.calls, tokens=limits.tokens, money=limits.money)


@dataclass(frozen=True, slots=True)
class Bench:
    """The services that all agents of a team use. `names`: the agents that run here. `speak` returns the port of a
    role."""

    office: Office
    artoo: Artoo
    minds: Minds
    names: Callable[[], tuple[str, ...]]
    speak: Callable[[Role], Port]

    @property
    def workspace(self) -> Path:
        """Return the folder in which agents work if a task names no project."""
        return self.office.config.workspace_path

    def places(self, task: BoardTask) -> RunOptions:
        """Return the directories in which a task runs. It runs in its project, or without a project in the
        workspace. Raises ConfigurationError."""
        project = self.office.projects.place(task.project) if task.project else self.workspace
        return RunOptions(project=project, workspace=self.workspace)

    def mail_tools(self, name: str, work: str) -> tuple[Tool, ...]:
        """Return the tools with which an agent can write letters during one assignment."""
        office, settings = self.office, self.office.config.runtime.communication.a2a_protocol
        others = tuple(other for other in (*self.names(), OPERATOR) if other != name)
        seconds, asked = float(settings.sync_timeout_seconds), office.board.work.ask
        letters = Letters(name, work, office.mailbox, office.asking, others, seconds, settings.standins, asked)
        return mail_tools(letters)

    def desk(self, name: str) -> Path:
        """Make the agent's own folder in the workspace, for work that is no board task. Blocks.

        Raises ConfigurationError if it cannot be made.
        """
        place = self.workspace / "agents" / name
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{place} cannot be made: {error.strerror}; set `workspace` to a directory of yours"
            ) from error
        return place
