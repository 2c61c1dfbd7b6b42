"""Keeps the grid of beats against clocks that sleep, stop and jump."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from artoo.agents.heartbeat.beat_accounting import Accounts
from artoo.agents.heartbeat.beat_grid import JUMP_TOLERANCE, Beat, after_absence, reckon
from artoo.ports.clock import Clock

ABSENT = "artoo was not running, or the machine slept"
_AWAY = "artoo was away and the clock went back: the beats start again now"
_BACK = "back: the beats keep their distance, nothing is done twice"
_FORWARD = "forward, or the machine slept: the beats between were missed"


class Timekeeper:
    """Calls `hold` for each beat of the grid, one after the other, and records those that were missed.

    Beats are never made up for: of those that fell due together, the newest is held and the others are missed.
    `resumed` is called when artoo was away for less than an interval: no beat is due, but work may be waiting.
    """

    def __init__(
        self,
        accounts: Accounts,
        clock: Clock,
        interval: float,
        *,
        hold: Callable[[Beat], Awaitable[None]],
        resumed: Callable[[], None],
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._interval = interval
        self._hold = hold
        self._resumed = resumed
        self.dozing = False
        """Whether it only waits for the next beat: it can be cancelled then without losing a record."""

    async def run(self, stopping: Callable[[], bool]) -> None:
        """Keeps time until `stopping`, or cancelled."""
        last = await self._anchor()
        while not stopping():
            reckoning = reckon(last, self._clock.now(), self._interval)
            if reckoning.wait > 0:
                shift = await self._doze(reckoning.wait)
                last = last.shifted(min(0.0, shift)) if last is not None else None
                continue
            if reckoning.missed is not None:
                await self._accounts.missed(*reckoning.missed, ABSENT)
            await self._hold(reckoning.beat)
            last = reckoning.beat

    async def _anchor(self) -> Beat | None:
        last = await self._accounts.resumed()
        if last is None:
            return None
        anchor, shift = after_absence(last, self._clock.now(), self._interval)
        if shift:
            await self._accounts.jumped(shift, _AWAY)
        if reckon(anchor, self._clock.now(), self._interval).wait > 0:
            self._resumed()
        return anchor

    async def _doze(self, seconds: float) -> float:
        """Sleeps, and returns by how many seconds the wall clock jumped meanwhile; small steps are none."""
        wall, steady = self._clock.now(), self._clock.monotonic()
        self.dozing = True
        try:
            await self._clock.sleep(seconds)
        finally:
            self.dozing = False
        shift = (self._clock.now() - wall).total_seconds() - (self._clock.monotonic() - steady)
        if abs(shift) <= JUMP_TOLERANCE:
            return 0.0
        await self._accounts.jumped(shift, _BACK if shift < 0 else _FORWARD)
        return shift
