"""What all agents of a team share while they work: the board, the mailbox, the submissions, and artoo itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.agents import FOREIGN, OPERATOR, BoardTask
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import RunOptions
from artoo.team.letters import Letters, StandIns
from artoo.team.minds import Minds
from artoo.team.office import Office
from artoo.tools.builtin.mail import mail_tools
from artoo.tools.core.tool import Tool


@dataclass(frozen=True, slots=True)
class Bench:
    """One per process. `names` gives the agents that work here."""

    office: Office
    artoo: Artoo
    minds: Minds
    names: Callable[[], tuple[str, ...]]
    standins: StandIns

    @property
    def workspace(self) -> Path:
        """Where agents work when no project is named."""
        return self.office.config.workspace_path

    def places(self, task: BoardTask) -> RunOptions:
        """Where a task works: its project, or without one the workspace. Raises ConfigurationError."""
        project = self.office.projects.place(task.project) if task.project else self.workspace
        return RunOptions(project=project, workspace=self.workspace)

    def mail_tools(self, name: str, work: str) -> tuple[Tool, ...]:
        """Letters that `name` may write for one piece of work."""
        office, settings = self.office, self.office.config.runtime.communication.a2a_protocol
        foreign = (FOREIGN + colleague for colleague in office.config.a2a.colleagues)
        others = tuple(other for other in (*self.names(), OPERATOR, *foreign) if other != name)
        seconds, asked = float(settings.sync_timeout_seconds), office.board.work.ask
        return mail_tools(Letters(name, work, office.mailbox, office.asking, others, seconds, self.standins, asked))

    def desk(self, name: str) -> Path:
        """Where an agent works when no task governs it: a directory of its own in the workspace. Blocks.

        Raises ConfigurationError when it cannot be made.
        """
        place = self.workspace / "agents" / name
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{place} cannot be made: {error.strerror}; set `workspace` to a directory of yours"
            ) from error
        return place
