"""Back off from a model that is throttled or away: exponentially, with jitter, bounded, reset on success."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

SHORTEST_PULSE, LONGEST_PULSE = 60, 300
"""Seconds between two beats (`004`, pitfall "heartbeat storming")."""

LONGEST_BACKOFF = 3_600.0
"""Seconds: whatever happened, an agent tries again within the hour."""


class Backoff:
    """An exponential back-off in seconds of a steady clock. `jitter` returns a number in [0, 1).

    The n-th failure in a row waits between half and all of `first` · 2ⁿ⁻¹ seconds, at most `longest`. Agents of
    one endpoint may share one of these, because it is the endpoint that is throttled.
    """

    def __init__(self, first: float, jitter: Callable[[], float], *, longest: float = LONGEST_BACKOFF) -> None:
        self._first = first
        self._jitter = jitter
        self._longest = longest
        self._failures = 0
        self._until = 0.0
        self._told = ""

    def separate(self, first: float) -> Backoff:
        """Return another one of the same kind, for failures that are not the endpoint's."""
        return Backoff(first, self._jitter, longest=self._longest)

    def failed(self, now: float, why: str, *, at: datetime) -> float:
        """Count a failure and return for how many seconds nothing should be tried. `at`: the wall clock's `now`.

        Work that was under way when the wait began belongs to the failure that began it: agents that are throttled
        at once are throttled once.
        """
        if now < self._until:
            return self._until - now
        ceiling = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        delay = ceiling * (0.5 + 0.5 * self._jitter())
        self._until = now + delay
        again = (at + timedelta(seconds=delay)).astimezone(UTC)
        self._told = f"backing off until {again:%H:%M} UTC, after {self._failures} in a row: {why}"
        return delay

    def succeeded(self) -> None:
        """Reset the back-off because the model answered: the next failure is a first one again."""
        self._failures, self._until, self._told = 0, 0.0, ""

    def waiting(self, now: float) -> str | None:
        """Return why nothing may be tried now, and until when; None: it may. One wait has one text."""
        return None if now >= self._until else self._told


class WakeAllowance:
    """An allowance of wakes: `most` at once, refilled evenly within `interval` seconds."""

    def __init__(self, most: int, interval: float) -> None:
        self._most = most
        self._rate = most / interval
        self._left = float(most)
        self._at = 0.0

    def has_one(self, now: float) -> bool:
        """Check whether a wake is left. False when a storm has used them all: the next pulse will look."""
        self._left = min(float(self._most), self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        return self._left >= 1

    def use(self) -> None:
        """Use up one wake."""
        self._left -= 1
