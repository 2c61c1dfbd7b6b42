"""The tools that an agent has a right to: what its identity forbids is neither offered nor run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.ports.tools import Ticket, Toolbox, Tools, ToolSpec


@dataclass(frozen=True, slots=True)
class LimitedTools:
    """Implements `ports.tools.Tools` over others. `forbidden` are identities: `shell`, `shell:curl`."""

    tools: Tools
    forbidden: frozenset[str]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Those that are left."""
        return _allowed(self.tools.specs, self.forbidden)

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> LimitedToolbox:
        """See Tools."""
        return LimitedToolbox(self.tools, self.tools.toolbox(subtask_id, must_not, cautions), self.forbidden)

    def identities(self, name: str, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """See Tools."""
        return self.tools.identities(name, arguments)


@dataclass(frozen=True, slots=True)
class LimitedToolbox:
    """Implements `ports.tools.Toolbox`."""

    tools: Tools
    toolbox: Toolbox
    forbidden: frozenset[str]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Those that are left."""
        return _allowed(self.toolbox.specs, self.forbidden)

    @property
    def interrupted(self) -> tuple[ToolCall, ...]:
        """See Toolbox."""
        return self.toolbox.interrupted

    async def call(self, name: str, arguments: Mapping[str, str], ticket: Ticket | None = None) -> ToolCall:
        """Runs one tool, or refuses it with the reason."""
        identities = (name, *self.tools.identities(name, arguments))
        met = [identity for identity in identities if identity in self.forbidden]
        if not met:
            return await self.toolbox.call(name, arguments, ticket)
        return ToolCall(
            tool=name,
            identity=tuple(dict.fromkeys(identities)),
            target="",
            input="",
            status=CallStatus.REFUSED,
            reason=f"this agent has no right to use {met[0]}; do it another way, or report that it cannot be done",
        )


def _allowed(specs: Iterable[ToolSpec], forbidden: frozenset[str]) -> tuple[ToolSpec, ...]:
    return tuple(spec for spec in specs if spec.name not in forbidden)
