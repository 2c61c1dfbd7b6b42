"""A span of time that a wall clock which is set meanwhile cannot hide.

Change times of files come from the wall clock. How far it went is compared with a clock that nobody can set: the
window is widened by what the wall clock was set back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

_WALL = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock of change times: it stands still between two ticks."""
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_JITTER_NS = 20_000_000
"""The two clocks are not read at once, and one stands still between ticks."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """From `after_ns` to `until_ns` of the wall clock, the end included: `change_time in window`."""

    after_ns: int
    until_ns: int

    def __contains__(self, changed_ns: int) -> bool:
        return self.after_ns < changed_ns <= self.until_ns


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment by both clocks. `steady_ns` None: it was read from disk, after a restart."""

    wall_ns: int
    steady_ns: int | None

    @classmethod
    def now(cls) -> Moment:
        return cls(time.clock_gettime_ns(_WALL), time.clock_gettime_ns(_STEADY))

    def until(self, end: Moment) -> TimeWindow:
        """Return everything that the wall clock may have shown between two moments."""
        set_back = 0
        if self.steady_ns is not None and end.steady_ns is not None:
            set_back = max(0, (end.steady_ns - self.steady_ns) - (end.wall_ns - self.wall_ns))
        set_back = set_back if set_back > _JITTER_NS else 0
        return TimeWindow(self.wall_ns - set_back, end.wall_ns + set_back)
