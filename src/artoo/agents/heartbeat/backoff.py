"""The heartbeat interval (shortest, default, longest), the back-off for a throttled model, and the limit on wakes.

A successful call resets the back-off.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

SHORTEST_INTERVAL, USUAL_INTERVAL, LONGEST_INTERVAL = 60, 120, 300
"""The heartbeat interval in seconds: its limits (`004`, pitfall "heartbeat storming") and its default."""

LONGEST_BACKOFF = 3_600.0
"""Maximum number of seconds of the back-off, so that an agent retries within an hour in any case."""


class Backoff:
    """An exponential back-off, in seconds of a steady clock. `jitter` returns a number in [0, 1).

    After the n-th failure in a row, the wait is between half of `first` · 2ⁿ⁻¹ seconds and all of them, at most
    `longest`. Agents with the same endpoint may share one object, because the endpoint is what limits the rate.
    """

    def __init__(self, first: float, jitter: Callable[[], float], *, longest: float = LONGEST_BACKOFF) -> None:
        self._first = first
        self._jitter = jitter
        self._longest = longest
        self._failures = 0
        self._until = 0.0
        self._told = ""

    def separate(self, first: float) -> Backoff:
        """Return another back-off with the same settings, for failures that the endpoint does not cause."""
        return Backoff(first, self._jitter, longest=self._longest)

    def failed(self, now: float, why: str, *, at: datetime) -> float:
        """Count a failure. Return the number of seconds to wait. `at`: the wall clock time that corresponds to
        `now`.

        A failure during a wait is not counted again. If several agents fail at the same time, this counts once.
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
        """Reset the back-off, because the model has answered."""
        self._failures, self._until, self._told = 0, 0.0, ""

    def waiting(self, now: float) -> str | None:
        """Return the reason for the wait, and until when it lasts. Return None if there is no wait. The text stays
        the same during one wait."""
        return None if now >= self._until else self._told


class WakeAllowance:
    """A limit on wakes. `most` wakes are possible at once, and new ones are granted evenly over `interval`
    seconds."""

    def __init__(self, most: int, interval: float) -> None:
        self._most = most
        self._rate = most / interval
        self._left = float(most)
        self._at = 0.0

    def has_one(self, now: float) -> bool:
        """Check whether a wake is left. If there were too many wakes, none is left, and the work is done at the
        next beat."""
        self._left = min(float(self._most), self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        return self._left >= 1

    def use(self) -> None:
        """Use up one wake."""
        self._left -= 1
