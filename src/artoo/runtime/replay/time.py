"""The time of a replay: that of the messages, until the task goes on; then it runs on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from artoo.ports.clock import Clock
from artoo.ports.stopwatch import Stopwatch


class ReplayClock:
    """Implements Clock. `real` runs once the task is live; time in which the task was stopped never counted."""

    def __init__(self, real: Clock, start: datetime) -> None:
        self._real = real
        self._at = start
        self._passed = 0.0
        self._offset: float | None = None
        self._sleeping: set[asyncio.Future[None]] = set()

    def now(self) -> datetime:
        """When the message that was told last was said."""
        return self._at if self._offset is None else self._real.now()

    def monotonic(self) -> float:
        """Seconds of the task."""
        return self._passed if self._offset is None else self._offset + self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Until `wake`; once live, as long as it takes."""
        if self._offset is not None:
            await self._real.sleep(seconds)
            return
        waking = asyncio.get_running_loop().create_future()
        self._sleeping.add(waking)
        try:
            await waking
        finally:
            self._sleeping.discard(waking)

    def move(self, at: datetime, *, stopped: bool = False) -> None:
        """It is `at` now. `stopped`: nothing ran since it was moved last."""
        if not stopped:
            self._passed += max(0.0, (at - self._at).total_seconds())
        self._at = at

    def wake(self) -> None:
        """Everybody's sleep is over."""
        for waking in self._sleeping:
            if not waking.done():
                waking.set_result(None)

    def go_live(self) -> None:
        """Real time from here on."""
        self._offset = self._passed - self._real.monotonic()
        self.wake()


class RecordedWatch(Stopwatch):
    """R7's stopwatch, which shows what it showed then as long as `recorded` knows that."""

    def __init__(self, clock: Clock, recorded: Callable[[], float | None]) -> None:
        super().__init__(clock)
        self._recorded = recorded

    def elapsed_ms(self) -> float:
        """Milliseconds that count: exactly those of the log, then by the clock."""
        recorded = self._recorded()
        return super().elapsed_ms() if recorded is None else recorded
