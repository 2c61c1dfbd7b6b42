"""What all agents of a team share while they work: the board, the mailbox, the submissions, and artoo itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from artoo.agents.board.board import Board
from artoo.agents.board.merges import Merges
from artoo.agents.cognition.store import Session
from artoo.agents.foreign.foreign_tasks import Foreign
from artoo.agents.identity.fallback_agents import StandIns
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.request_reply import Asking
from artoo.contracts.agents import OPERATOR, BoardTask
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.solution import FinalResult
from artoo.ports.clock import Clock
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.changes.submissions import Submissions
from artoo.team.approval import Approvals
from artoo.team.exchange import Exchange
from artoo.team.letters import Letters
from artoo.tools.builtin.mail import mail_tools
from artoo.tools.core.tool import Tool

Remember = Callable[[str, Session, str, FinalResult], Awaitable[None]]
"""Keeps what an agent did, once: its name, the session, the request, the result."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One per process. `names` gives the agents, `colleagues` are foreign ones that can be written to;
    `reply_seconds` how long a question to a colleague is waited for, `pending_days` how long a submission waits for
    its review.

    `knowledge` gives what an agent has learnt, for its prompts about a request; `remember` keeps what it did,
    `note` what it was told. `project_place`: where the project of a task is here. `exchange`: where several
    machines share the books.
    """

    artoo: Artoo
    board: Board
    merges: Merges
    mailbox: Mailbox
    asking: Asking
    registry: Registry
    approvals: Approvals
    submissions: Submissions
    clock: Clock
    workspace: Path
    names: Callable[[], tuple[str, ...]]
    colleagues: tuple[str, ...]
    foreign: Foreign
    reply_seconds: float
    standins: StandIns
    pending_days: float
    knowledge: Callable[[str, str], Awaitable[str]]
    remember: Remember
    note: Callable[[str, Session], Awaitable[None]]
    project_place: Callable[[str], Path]
    exchange: Exchange | None

    def places(self, task: BoardTask) -> RunOptions:
        """Where a task works: its project, or without one the workspace. Raises ConfigurationError."""
        project = self.project_place(task.project) if task.project else self.workspace
        return RunOptions(project=project, workspace=self.workspace)

    def mail_tools(self, name: str, work: str) -> tuple[Tool, ...]:
        """Letters that `name` may write for one piece of work."""
        others = tuple(other for other in (*self.names(), OPERATOR, *self.colleagues) if other != name)
        asked = self.board.work.ask
        return mail_tools(
            Letters(name, work, self.mailbox, self.asking, others, self.reply_seconds, self.standins, asked)
        )

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
