"""Time that counts: it stands still while a person is being asked (SPEC section 4)."""

from __future__ import annotations

from artoo.ports.clock import Clock


class Stopwatch:
    """Milliseconds since `start`, without the pauses. Pauses nest: several questions may be open at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started: float | None = None
        self._paused_since: float | None = None
        self._paused_for = 0.0
        self._open_questions = 0

    def start(self) -> None:
        """Starts counting from now."""
        self._started = self._clock.monotonic()

    def pause(self) -> None:
        """A question was asked."""
        if self._open_questions == 0:
            self._paused_since = self._clock.monotonic()
        self._open_questions += 1

    def resume(self) -> None:
        """A question was answered. More answers than questions change nothing."""
        if self._open_questions == 0:
            return
        self._open_questions -= 1
        if self._open_questions == 0 and self._paused_since is not None:
            self._paused_for += self._clock.monotonic() - self._paused_since
            self._paused_since = None

    def elapsed_ms(self) -> float:
        """Milliseconds that count; 0 before `start`."""
        if self._started is None:
            return 0.0
        until = self._paused_since if self._paused_since is not None else self._clock.monotonic()
        return max(0.0, (until - self._started - self._paused_for) * 1_000)
