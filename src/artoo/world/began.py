"""When a command ran, told so that a wall clock that is set meanwhile does not matter.

Change times of files are the wall clock's. How far it went is compared with a clock that nobody sets: what it was
put back by in between is allowed for. A time after the end is of a clock that was ahead before, and says nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

_WALL = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
"""The clock of change times: it stands still between two ticks."""
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """From `after_ns` to `until_ns` of the wall clock: `change_time in meanwhile`."""

    after_ns: int
    until_ns: int

    def __contains__(self, changed_ns: int) -> bool:
        return self.after_ns < changed_ns <= self.until_ns


@dataclass(frozen=True, slots=True)
class Began:
    """A moment, by both clocks."""

    wall_ns: int
    steady_ns: int

    @classmethod
    def now(cls) -> Began:
        return cls(time.clock_gettime_ns(_WALL), time.clock_gettime_ns(_STEADY))

    def until(self, end: Began) -> Meanwhile:
        """All that the wall clock may have shown between two moments."""
        put_back = max(0, (end.steady_ns - self.steady_ns) - (end.wall_ns - self.wall_ns))
        jitter = 20_000_000  # the two are not read at once, and one stands still between ticks
        put_back = put_back if put_back > jitter else 0
        return Meanwhile(self.wall_ns - put_back, end.wall_ns + put_back)
