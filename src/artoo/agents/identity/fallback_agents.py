"""Routing around an agent that does not answer (`004`, pitfall "synchronous A2A deadlocks": fallback routing).

Who may stand in is the operator's word: what one agent is asked is not everybody's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.ports.clock import Clock

SILENT_SECONDS = 600.0
"""How long one that did not answer is passed over, where somebody stands in."""


@dataclass(slots=True)
class StandIns:
    """Shared by all agents of a team. `names`: who is asked, the first that may be, in another's place."""

    names: Sequence[str]
    clock: Clock
    _silent: dict[str, float] = field(default_factory=dict[str, float])

    def ways(self, sender: str, recipient: str) -> tuple[str, ...]:
        """Whom to ask in turn, two at most; one that was silent lately comes last."""
        others = [name for name in self.names if name not in (sender, recipient)]
        ways = (recipient, *others[:1])
        return tuple(sorted(ways, key=self._is_silent))

    def heard(self, name: str, *, answered: bool) -> None:
        """What came of asking."""
        if answered:
            self._silent.pop(name, None)
        else:
            self._silent[name] = self.clock.monotonic() + SILENT_SECONDS

    def _is_silent(self, name: str) -> bool:
        return self._silent.get(name, 0.0) > self.clock.monotonic()
