"""`FakeClock`, a clock that only advances when a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """An implementation of `artoo.ports.clock.Clock` for tests.

    `advance` moves the time forward and wakes the sleepers that are due, in order. With `auto_advance`, a sleep
    itself moves the time and returns at the next turn of the event loop. This is for code that only waits for
    itself, such as retries. `slept` contains the durations of all requested sleeps, in seconds.
    """

    def __init__(self, start: datetime = _START, *, auto_advance: bool = False) -> None:
        self._start = start
        self._elapsed = self._moved = 0.0
        self._auto_advance = auto_advance
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._arrived = asyncio.Event()
        self.slept: list[float] = []

    def now(self) -> datetime:
        """Return the start time plus the time that has passed plus all jumps."""
        return self._start + timedelta(seconds=self._elapsed + self._moved)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has moved the time this far."""
        self.slept.append(seconds)
        if self._auto_advance:
            self._elapsed += max(0.0, seconds)
        # Like asyncio's own sleep, yield to the event loop once, even for a sleep of 0 s.
        if self._auto_advance or seconds <= 0:
            await asyncio.sleep(0)
            return
        self._count += 1
        waiting = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._count, waiting))
        self._arrived.set()
        await waiting

    def advance(self, seconds: float) -> None:
        """Move the time forward. The sleepers that it wakes run at the next `await` of the test."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds:g} s; advance by 0 or more")
        end = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._elapsed, _, waiting = heapq.heappop(self._sleepers)
            if not waiting.done():
                waiting.set_result(None)
        self._elapsed = end

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back. No time passes: no sleeper wakes, and `monotonic` does not change."""
        self._moved += seconds

    def until_next(self) -> float | None:
        """Return the seconds until the first sleeper is due. Return None if there are no sleepers."""
        due = [at for at, _, waiting in self._sleepers if not waiting.done()]
        return max(0.0, min(due) - self._elapsed) if due else None

    @property
    def sleepers(self) -> int:
        """Return the present number of sleepers."""
        return sum(not waiting.done() for _, _, waiting in self._sleepers)

    async def wait_for_sleepers(self, count: int = 1) -> None:
        """Wait until there are at least `count` sleepers. Call this before `advance`."""
        while self.sleepers < count:
            self._arrived.clear()
            await self._arrived.wait()
