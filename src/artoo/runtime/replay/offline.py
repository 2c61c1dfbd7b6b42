"""Nothing to act with and nothing to see: what a replay has beyond its log. Nothing here is ever reached."""

from __future__ import annotations

from typing import Never

from artoo.contracts.plan import Caution, MustNot
from artoo.ports.evidence import DIFFERENCE_CHARACTERS, CommandView, FileView, Language, Trial
from artoo.ports.surroundings import Surroundings
from artoo.ports.tools import Arguments, Toolbox, ToolSpec
from artoo.runtime.task.role_context import Hands, SubTaskSight


def no_hands() -> Hands:
    """For a task that is only looked at."""
    nothing = SubTaskSight(NothingThere(), NothingAround())
    return Hands(tools=NoTools(), whole=nothing, sight=lambda subtask_id: nothing)


class NoTools:
    """Implements ports.tools.Tools."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """None."""
        return ()

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Toolbox:
        """Raises RuntimeError."""
        _unreachable("tools")

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """The name alone."""
        return (name,)


class NothingThere:
    """Implements ports.evidence.EvidenceSource."""

    async def file(self, path: str) -> FileView:
        """Raises RuntimeError."""
        _unreachable("files")

    async def command(self, command: str) -> CommandView:
        """Raises RuntimeError."""
        _unreachable("commands")

    async def trial(self, language: Language, program: str) -> Trial:
        """Raises RuntimeError."""
        _unreachable("commands")

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Raises RuntimeError."""
        _unreachable("files")


class NothingAround:
    """Implements ports.surroundings.TurnSource."""

    async def news(self) -> tuple[str, ...]:
        """Raises RuntimeError."""
        _unreachable("surroundings")

    async def look(self, request: str) -> Surroundings:
        """Raises RuntimeError."""
        _unreachable("surroundings")


def _unreachable(what: str) -> Never:
    raise RuntimeError(f"a replay has no {what}; it waits for them instead (artoo.runtime.replay.conductor)")
