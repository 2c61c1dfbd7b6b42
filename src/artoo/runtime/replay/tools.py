"""The tools of a replay: calls end as they ended then, and none is made before the task goes live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.roles import Role
from artoo.ports.tools import Arguments, Departure, Ticket, Toolbox, Tools, ToolSpec
from artoo.runtime.replay.conductor import Conductor
from artoo.tools.core.registry import CUT_OFF


class RecordedTools:
    """All tools of a task, as its roles saw them. Implements ports.tools.Tools.

    `specs` are those of the log; `beyond` are the real tools (None: there are none, as in a replay).
    """

    def __init__(self, conductor: Conductor, specs: tuple[ToolSpec, ...] | None, beyond: Tools | None) -> None:
        self._conductor = conductor
        self._specs = specs
        self._beyond = beyond

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Those of the log, or where it does not say, the real ones."""
        if self._specs is not None:
            return self._specs
        return self._beyond.specs if self._beyond is not None else ()

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> RecordedToolbox:
        """See Tools."""
        offered = tuple(spec for spec in self.specs if spec.name not in must_not.tools)
        beyond = self._beyond

        def real() -> Toolbox | None:
            return None if beyond is None else beyond.toolbox(subtask_id, must_not, cautions)

        return RecordedToolbox(self._conductor, subtask_id, offered, real)

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """See Tools."""
        return (name,) if self._beyond is None else self._beyond.identities(name, arguments)


@dataclass(slots=True)
class RecordedToolbox:
    """One subtask's tools. Implements ports.tools.Toolbox."""

    conductor: Conductor
    subtask_id: str
    specs: tuple[ToolSpec, ...]
    make: Callable[[], Toolbox | None]
    _real: Toolbox | None = None
    _cut: list[ToolCall] = field(default_factory=list[ToolCall])

    @property
    def interrupted(self) -> tuple[ToolCall, ...]:
        """Those of the log, then the real ones."""
        return (*self._cut, *(self._real.interrupted if self._real is not None else ()))

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """The record of the log; for a call that the log does not have, or not to its end, the real one.

        A call that was under way is the real toolbox's to look at: it is never made again unseen.
        """
        recorded = self.conductor.recording.calls.get(ticket.act) if ticket is not None else None
        if recorded is not None and ticket is not None:
            for started in recorded.started:
                ticket.announce(Departure(started.input, started.effects, started.digest))
            ended = recorded.ended
            if ended is not None and not _is_cut(ended):
                return ended
            if ended is not None:
                self._cut.append(ended)
        await self.conductor.until_live((Role.EXECUTOR, self.subtask_id), f"the end of a call of {name}")
        if self._real is None:
            self._real = self.make()
        if self._real is None:
            raise RuntimeError("a replay went live without tools")
        return await self._real.call(name, arguments, ticket)


def _is_cut(call: ToolCall) -> bool:
    """The attempt's time was over: the call never returned, and its record was added afterwards."""
    return call.status is CallStatus.INTERRUPTED and call.reason == CUT_OFF
