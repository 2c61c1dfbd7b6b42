"""Run an agent's heartbeat loop, with the most items and wakes of a beat, pauses and clock jumps.

The loop sleeps until the next beat or a wake, and then works if there is work.

    sleep ─ beat ─► paused? backing off? ── yes ─► skipped, and why
      ▲      │ no
      │      ▼
      │     look (code only) ── nothing ─► idle
      │      │ something
      │      ▼
      └──── one duty after the other, until none is due or the bound is reached ─► run

There is only one loop, so its beats never overlap. Beats that become due during the work are recorded as skipped
afterwards.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from artoo.agents.heartbeat.backoff import USUAL_INTERVAL, Backoff, WakeAllowance
from artoo.agents.heartbeat.duties import Duty, Labour, labour
from artoo.agents.heartbeat.ledger import Beat, Pulses
from artoo.agents.mail.wake import either
from artoo.contracts.agents import AgentWoken, ClockJumped
from artoo.contracts.errors import ArtooError
from artoo.ports.clock import Clock

STARTED = "artoo has started"
ABSENT = "artoo was not running, or the machine slept"
JUMP_TOLERANCE = 5.0
"""Number of seconds by which the wall clock and the steady clock must differ to count as a jump."""
TROUBLE_SECONDS = 15.0
"""Number of seconds of the first wait after a problem of the agent itself. The wait doubles as long as the problem
lasts.

A short problem, such as a locked database or a mount that fails on a busy machine, is over by then.
"""

_TOO_OFTEN = "woken too often: left for the next beat"
_AGAIN = "trying again after a trouble"
_AWAY = "artoo was away and the clock went back: the beats start again now"
_BACK = "back: the beats keep their distance, nothing is done twice"
_FORWARD = "forward, or the machine slept: the beats between were missed"


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """The settings of a heartbeat. `interval` in seconds. `items`: maximum number of items of work in one beat.
    `wakes`: maximum number of wakes with work in one interval. `grace`: number of seconds for which the work may
    continue after `stop`."""

    interval: float = USUAL_INTERVAL
    items: int = 8
    wakes: int = 6
    grace: float = 20.0


async def _never() -> str | None:
    return None


class Heartbeat:
    """The heartbeat loop of one agent. Its method `run` is started in a task group. Other code calls `wake` and
    `stop`.

    Duties take turns in the given order. `backoff` belongs to the endpoint, so several agents may share it.
    Problems of the agent itself have a back-off of their own. `paused` returns the reason why the agent may not
    work, or None if it may.
    """

    def __init__(
        self,
        agent: str,
        ledger: Pulses,
        duties: Sequence[Duty],
        clock: Clock,
        *,
        backoff: Backoff,
        paused: Callable[[], Awaitable[str | None]] = _never,
        settings: HeartbeatSettings | None = None,
    ) -> None:
        self._settings = settings if settings is not None else HeartbeatSettings()
        self._interval = self._settings.interval
        self._agent = agent
        self._ledger = ledger
        self._duties = tuple(duties)
        self._clock = clock
        self._backoff = backoff
        self._troubles = backoff.separate(TROUBLE_SECONDS)
        self._retry_at = math.inf
        self._paused = paused
        self._allowance = WakeAllowance(self._settings.wakes, self._interval)
        self._offset = self._wall_offset()
        self._cause: str | None = None
        self._told_deferred = False
        self._signal = asyncio.Event()
        self._stopping = asyncio.Event()
        self.busy: str | None = None
        """The duty in progress, or None."""

    def wake(self, cause: str) -> None:
        """Check for work now instead of at the next beat. The call is fast, and may be made at any time."""
        self._cause = cause
        self._signal.set()

    def stop(self) -> None:
        """Stop the loop, after which `run` returns. If work is running, it is cancelled when the grace period is
        over."""
        self._stopping.set()
        self._signal.set()

    async def run(self) -> None:
        """Run the loop until stopped. Raises the errors of the ledger, because no beat may happen without a
        record."""
        async with asyncio.TaskGroup() as group:
            living = group.create_task(self._live())
            await self._stopping.wait()
            # The clock that was passed in measures the grace period, so that tests need not wait for it.
            grace = group.create_task(self._clock.sleep(self._settings.grace))
            await asyncio.wait({living, grace}, return_when=asyncio.FIRST_COMPLETED)
            grace.cancel()
            living.cancel()

    async def _live(self) -> None:
        last = await self._anchor()
        while not self._stopping.is_set():
            last = await self._after_jump(last)
            now = self._clock.now()
            due = 1 if last is None else last.due(now, self._interval)
            if last is None or due:
                beat = Beat(1, now) if last is None else last.later(due, self._interval)
                if last is not None and due > 1:
                    first, until = last.later(1, self._interval), beat.later(-1, self._interval)
                    await self._ledger.record(self._agent, first, "missed", ABSENT, last=until)
                last = await self._skip_overdue(beat, await self._pulse(beat))
                continue
            await self._doze((last.later(1, self._interval).due_at - now).total_seconds())
            if self._cause is not None and not self._stopping.is_set():
                last = await self._skip_overdue(last, await self._woken())

    async def _anchor(self) -> Beat | None:
        """Return the last recorded beat, whose schedule is continued. After a quick restart, check for work at
        once."""
        last = await self._ledger.resumed(self._agent)
        if last is None:
            return None
        now = self._clock.now()
        ahead = (last.due_at - now).total_seconds()
        # It is not known how long the agent was absent, so the schedule begins again.
        if ahead > JUMP_TOLERANCE:
            await self._tell_jump(-ahead, _AWAY)
            return Beat(last.number, now).shifted(-self._interval)
        if not last.due(now, self._interval):
            self.wake(STARTED)
        return last

    async def _after_jump(self, last: Beat | None) -> Beat | None:
        """Record a jump of the wall clock. If the clock went back, move the schedule back too."""
        before, self._offset = self._offset, self._wall_offset()
        shift = self._offset - before
        if last is None or abs(shift) <= JUMP_TOLERANCE:
            return last
        await self._tell_jump(shift, _BACK if shift < 0 else _FORWARD)
        return last.shifted(min(0.0, shift))

    async def _tell_jump(self, seconds: float, decision: str) -> None:
        at = self._clock.now()
        jumped = ClockJumped(agent=self._agent, seconds=round(seconds, 3), decision=decision, at=at)
        await self._ledger.tell(self._agent, jumped)

    async def _tell_woken(self, cause: str, outcome: Literal["run", "deferred"], why: str, calls: int = 0) -> None:
        at = self._clock.now()
        woken = AgentWoken(agent=self._agent, at=at, cause=cause, outcome=outcome, why=why, llm_calls=calls)
        await self._ledger.tell(self._agent, woken)

    def _wall_offset(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()

    async def _doze(self, seconds: float) -> None:
        """Sleep until the next beat, a wake, or the time of the next retry."""
        seconds = min(seconds, max(0.0, self._retry_at - self._clock.monotonic()))
        if not self._signal.is_set():
            await either(self._signal.wait(), self._clock.sleep(seconds))
        # The event is cleared before the check for work, so that a wake during the check is noticed in the next
        # round.
        self._signal.clear()
        if self._clock.monotonic() >= self._retry_at:
            self._retry_at = math.inf
            self._cause = self._cause or _AGAIN

    async def _skip_overdue(self, last: Beat, at: str | None) -> Beat:
        """Record the beats that became due during the work as skipped. They are not done later."""
        due = last.due(self._clock.now(), self._interval)
        if at is None or not due:
            return last
        first, newest = last.later(1, self._interval), last.later(due, self._interval)
        await self._ledger.record(self._agent, first, "skipped", f"still busy: {at}", last=newest)
        return newest

    async def _look(self) -> tuple[str | None, str | None]:
        """Return the first duty that has work, or None. Also return the reason why no work is allowed now, or
        None."""
        now = self._clock.monotonic()
        try:
            if (paused := await self._paused()) is not None:
                return None, f"paused: {paused}"
            if (waits := self._backoff.waiting(now) or self._troubles.waiting(now)) is not None:
                return None, waits
            due = await self._first_due()
        except ArtooError as error:
            self._in_trouble(f"could not look: {error}")
            return None, f"could not look: {error}"
        return (None, "stopping") if due is not None and self._stopping.is_set() else (due, None)

    async def _first_due(self) -> str | None:
        for duty in self._duties:
            if await duty.due() is not None:
                return duty.name
        return None

    async def _pulse(self, beat: Beat) -> str | None:
        """Run one beat, which is idle, skipped, or has work. A beat with work is recorded before and after it.
        Returns the work that was done."""
        self._cause, self._told_deferred = None, False
        work, why_not = await self._look()
        if why_not is not None:
            await self._ledger.record(self._agent, beat, "skipped", why_not)
        elif work is None:
            await self._ledger.record(self._agent, beat, "idle")
        else:
            await self._ledger.begin(self._agent, beat)
            done = Labour()
            try:
                await self._labour(work, done)
            finally:
                told = self._ledger.record(self._agent, beat, "run", done.told(), llm_calls=done.llm_calls)
                # The grace period may end while this waits for the database.
                await asyncio.shield(told)
        return work

    async def _woken(self) -> str | None:
        """Check for work at once, after a wake. If no work is allowed now, it is done at the next beat. Returns the
        work that was done."""
        cause, self._cause = self._cause or "", None
        work, why_not = await self._look()
        if work is not None and not self._allowance.has_one(self._clock.monotonic()):
            work, why_not = None, _TOO_OFTEN
        if why_not is not None and not self._told_deferred:
            # Only one record is written until the next beat, so that many wakes do not cause many records.
            self._told_deferred = True
            await self._tell_woken(cause, "deferred", why_not)
        if work is None:
            return None
        done = Labour()
        try:
            await self._labour(work, done)
        finally:
            if done.counts_as_wake:
                self._allowance.use()
            await asyncio.shield(self._tell_woken(cause, "run", done.told(), done.llm_calls))
        return work

    async def _labour(self, first: str, done: Labour) -> None:
        self.busy = first
        try:
            await labour(self._duties, done, most=self._settings.items, stop=self._stopping.is_set)
        finally:
            self.busy = None
        now, at = self._clock.monotonic(), self._clock.now()
        if done.throttled is not None:
            self._backoff.failed(now, done.throttled, at=at)
        elif done.llm_calls:
            self._backoff.succeeded()
        if done.trouble is not None:
            self._in_trouble(done.trouble)
        elif done.items:
            self._troubles.succeeded()

    def _in_trouble(self, why: str) -> None:
        now = self._clock.monotonic()
        self._retry_at = now + self._troubles.failed(now, why, at=self._clock.now())
