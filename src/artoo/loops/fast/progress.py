"""Detect a stuck attempt (equal results, idle turns), and decide after which turns or seconds to sample one.

Reference: SPEC section 3.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.steering import Heard, SampleDue
from artoo.loops.fast.calls import outcome_of
from artoo.ports.clock import Clock

# A call that has the same result this often in one attempt shows that the executor repeats itself.
MOST_EQUAL = 3
# An attempt is stuck after this many turns in which nothing changed and nothing new was printed.
MOST_IDLE = 10


@dataclass(slots=True)
class Progress:
    """The results of an attempt's turns, from which `stuck_by` decides whether the executor makes progress. Failed
    and refused calls of earlier attempts are still counted."""

    _results: Counter[tuple[object, ...]] = field(default_factory=Counter[tuple[object, ...]])
    _failed: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    _outputs: set[str] = field(default_factory=lambda: {""})
    _idle: int = 0
    _withheld: int = 0

    def begin(self) -> None:
        """Start the next attempt. Calls that succeeded in an earlier attempt may be repeated."""
        self._idle = 0
        self._results = Counter({key: count for key, count in self._results.items() if key in self._failed})

    def disturbed(self) -> None:
        """Reset the count of idle turns, because the user or another process changed something."""
        self._idle = 0

    def stuck_by(self, calls: Sequence[ToolCall]) -> str:
        """Count a turn that made these calls. Return the reason if the attempt is now stuck, else "".

        After a change, for example, tests may be run again, so the same call may be repeated. A call that waits for
        a process may be repeated too.
        """
        moved, why = False, ""
        for call in calls:
            outputs = {call.output, call.error_output}
            moved = moved or call.changed_something or not outputs <= self._outputs
            self._outputs |= outputs
            if call.changed_something:
                self._results.clear()
            why = why or self._repeated(call) or self._withheld_again(call)
        self._idle = 0 if moved else self._idle + 1
        if why or self._idle < MOST_IDLE:
            return why
        return f"nothing changed and nothing new was seen in {MOST_IDLE} turns"

    def _repeated(self, call: ToolCall) -> str:
        if call.status is CallStatus.RUNNING:
            return ""
        result = outcome_of(call)
        self._results[result] += 1
        if call.went_wrong:
            self._failed.add(result)
        if self._results[result] < MOST_EQUAL:
            return ""
        said = call.reason if call.status is CallStatus.REFUSED else None
        return said or f"the same call had the same result {MOST_EQUAL} times"

    def _withheld_again(self, call: ToolCall) -> str:
        """Count an operation that was not allowed, and return the reason at the second one, because the executor
        must not work around a refusal.
        """
        if call.withheld_by is None:
            return ""
        self._withheld += 1
        return (call.reason or "a second operation was not allowed") if self._withheld > 1 else ""


_TURNS = 8
_SECONDS = 120.0


@dataclass(slots=True)
class Sampling:
    """Counts the turns and the time of one attempt, to decide when the attempt is sampled."""

    clock: Clock
    turns: int = 0
    _sampled_turn: int = 0
    _sampled_at: float = field(init=False)
    _calls: list[ToolCall] = field(default_factory=list[ToolCall])

    def __post_init__(self) -> None:
        self._sampled_at = self.clock.monotonic()

    def turned(self, calls: list[ToolCall]) -> None:
        """Count a turn that made these calls."""
        self.turns += 1
        self._calls += calls

    def due(self) -> tuple[Heard, ...]:
        """Return whether a sample is due, after a number of turns or a time, whichever comes first."""
        since = self.turns - self._sampled_turn
        due = since >= _TURNS or (since > 0 and self.clock.monotonic() - self._sampled_at >= _SECONDS)
        return (Heard(what="sample"),) if due else ()

    def take(self, subtask_id: str, attempt: int) -> SampleDue:
        """Start a sample that contains the calls since the last one."""
        calls, self._calls = tuple(self._calls), []
        self._sampled_turn, self._sampled_at = self.turns, self.clock.monotonic()
        return SampleDue(subtask_id=subtask_id, attempt=attempt, turn=self.turns, calls=calls)
