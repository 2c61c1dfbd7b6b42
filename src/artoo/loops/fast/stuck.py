"""When an attempt is stuck, by facts alone (SPEC section 3.5): there is no fixed number of turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.record import outcome_of

MOST_EQUAL = 3
"""The same call with the same result so often in one attempt is a loop."""
MOST_IDLE = 10
"""Turns of one attempt in which nothing changed and nothing new was printed."""


@dataclass(slots=True)
class Progress:
    """What the turns of an attempt have brought. Failures and refusals of earlier attempts count on."""

    _results: Counter[tuple[object, ...]] = field(default_factory=Counter[tuple[object, ...]])
    _failed: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    _outputs: set[str] = field(default_factory=lambda: {""})
    _idle: int = 0
    _withheld: int = 0

    def begin(self) -> None:
        """The next attempt begins: what ended well may be looked at again."""
        self._idle = 0
        self._results = Counter({key: count for key, count in self._results.items() if key in self._failed})

    def disturbed(self) -> None:
        """The user or another process brought something new: the count of idle turns begins again."""
        self._idle = 0

    def stuck_by(self, calls: Sequence[ToolCall]) -> str:
        """Count a turn that made these calls; return why the attempt is stuck now, or nothing.

        After a change the same call may be made again, as tests are. So may a call that waits for a process.
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
        """A second operation that was not allowed: a refusal is not worked around."""
        if call.withheld_by is None:
            return ""
        self._withheld += 1
        return (call.reason or "a second operation was not allowed") if self._withheld > 1 else ""
