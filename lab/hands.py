"""Simulate this machine: tools that operate in the simulated world, and an empty workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.execution import CallEffects, CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.ports.clock import Clock
from artoo.ports.evidence import DIFFERENCE_CHARACTERS, CommandView, FileView, Language, Trial
from artoo.ports.surroundings import Surroundings
from artoo.ports.tools import Arguments, Departure, Parameter, Ticket, ToolSpec
from artoo.runtime.task.role_context import Hands, SubTaskSight
from lab.minds import Minds, seconds

_PARAMETERS = (Parameter("place", "where"), Parameter("how", "in which manner", required=False))


def specs_of(names: Sequence[str], *, special: bool = False) -> tuple[ToolSpec, ...]:
    """Return the world's tools. Each reads and writes, so that blocking stops only before the last one."""
    return tuple(
        ToolSpec(name, "does parts of a job", _PARAMETERS, number, writes=True, special=special)
        for number, name in enumerate(names)
    )


def hands_of(minds: Minds, clock: Clock, specs: tuple[ToolSpec, ...]) -> Hands:
    """Make the tools and observations of a job."""
    seen = Sights(minds.made)
    sight = SubTaskSight(seen, seen)
    return Hands(LabTools(minds, clock, specs), sight, lambda subtask_id: sight)


@dataclass(frozen=True, slots=True)
class LabTools:
    """The implementation of `ports.tools.Tools`."""

    minds: Minds
    clock: Clock
    specs: tuple[ToolSpec, ...]

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> LabToolbox:
        """See Tools. A caution is approved without a question, because no user is present."""
        left = tuple(spec for spec in self.specs if spec.name not in must_not.tools)
        return LabToolbox(self, subtask_id, must_not, left)

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """Return the name alone."""
        return (name,)


@dataclass(slots=True)
class LabToolbox:
    """The implementation of `ports.tools.Toolbox`: blocked tools are absent, blocked targets refused."""

    tools: LabTools
    subtask_id: str
    must_not: MustNot
    specs: tuple[ToolSpec, ...]
    interrupted: tuple[ToolCall, ...] = field(default=())

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """See Toolbox."""
        place, how = str(arguments.get("place", "")), str(arguments.get("how", ""))
        given = ToolCall(tool=name, identity=(name,), target=place, input=f"{place} {how}".strip())
        if (name, place) in self.must_not.targets:
            return given.model_copy(
                update={"status": CallStatus.REFUSED, "reason": f"{place} must not be used now"}
            )
        if ticket is not None:
            ticket.announce(Departure(given.input, CallEffects.NONE))
        minds = self.tools.minds
        await self.tools.clock.sleep(seconds(minds, minds.world.act, "act", self.subtask_id, how))
        return given.model_copy(update=minds.use(self.subtask_id, name, place))


@dataclass(frozen=True, slots=True)
class Sights:
    """The evidence, surroundings and news of a world without files but those that a job has `made`."""

    made: set[str]

    async def file(self, path: str) -> FileView:
        """Return whether the file was made."""
        return FileView(exists=path in self.made, size=1)

    async def command(self, command: str) -> CommandView:
        """Return nothing, because there are no commands."""
        return CommandView(None, "", "there are no commands here")

    async def trial(self, language: Language, program: str) -> Trial:
        """Return nothing, because there are no programs."""
        return Trial(CommandView(None, "", "there are no programs here"))

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Return no changes."""
        return ""

    async def look(self, request: str) -> Surroundings:
        """Return no files."""
        return Surroundings()

    async def news(self) -> tuple[str, ...]:
        """Report nothing between turns."""
        return ()
