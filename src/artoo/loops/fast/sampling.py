"""When a long attempt is sampled: its criteria are then checked while it goes on (SPEC section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field

from artoo.contracts.execution import ToolCall
from artoo.contracts.steering import Heard, SampleDue
from artoo.ports.clock import Clock

_TURNS = 8
_SECONDS = 120.0


@dataclass(slots=True)
class Sampling:
    """Counts the turns and the time of one attempt."""

    clock: Clock
    turns: int = 0
    _sampled_turn: int = 0
    _sampled_at: float = field(init=False)
    _calls: list[ToolCall] = field(default_factory=list[ToolCall])

    def __post_init__(self) -> None:
        self._sampled_at = self.clock.monotonic()

    def turned(self, calls: list[ToolCall]) -> None:
        """A turn that made these calls has ended."""
        self.turns += 1
        self._calls += calls

    def due(self) -> tuple[Heard, ...]:
        """A sample, after so many turns or so much time, whichever comes first; else nothing."""
        since = self.turns - self._sampled_turn
        due = since >= _TURNS or (since > 0 and self.clock.monotonic() - self._sampled_at >= _SECONDS)
        return (Heard(what="sample"),) if due else ()

    def take(self, subtask_id: str, attempt: int) -> SampleDue:
        """Begin a sample, with the calls since the last one."""
        calls, self._calls = tuple(self._calls), []
        self._sampled_turn, self._sampled_at = self.turns, self.clock.monotonic()
        return SampleDue(subtask_id=subtask_id, attempt=attempt, turn=self.turns, calls=calls)
