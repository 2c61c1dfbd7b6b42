"""The time of a task, which is paused while a user is asked.

Reference: SPEC section 4.
"""

from __future__ import annotations

from artoo.ports.clock import Clock


class Stopwatch:
    """A stopwatch that counts the milliseconds since `start`, without the pauses.

    Pauses may overlap, because several questions may be open at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started: float | None = None
        self._paused_since: float | None = None
        self._paused_for = 0.0
        self._open_questions = 0

    def start(self) -> None:
        """Start to count from now."""
        self._started = self._clock.monotonic()

    def pause(self) -> None:
        """Pause the count, because a question was asked."""
        if self._open_questions == 0:
            self._paused_since = self._clock.monotonic()
        self._open_questions += 1

    def resume(self) -> None:
        """Resume the count if all questions have been answered. Answers without an open question are ignored."""
        if self._open_questions == 0:
            return
        self._open_questions -= 1
        # Only the answer to the last open question resumes the count.
        if self._open_questions == 0 and self._paused_since is not None:
            self._paused_for += self._clock.monotonic() - self._paused_since
            self._paused_since = None

    def elapsed_ms(self) -> float:
        """Return the counted milliseconds. Before `start` they are 0."""
        if self._started is None:
            return 0.0
        until = self._paused_since if self._paused_since is not None else self._clock.monotonic()
        return max(0.0, (until - self._started - self._paused_for) * 1_000)
