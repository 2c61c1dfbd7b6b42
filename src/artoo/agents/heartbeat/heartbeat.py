"""The heartbeat of one agent: beats on a grid, each accounted for once, and work only when there is some.

grid ─ beat ─► paused? backing off? busy? ── yes ─► skipped, and why
                 │ no
                 ▼
mail ─ wake ─► look (code only) ── nothing ─► idle
                 │ something
                 ▼
               one duty after the other, until none is due or the bound is reached ─► run
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from artoo.agents.heartbeat.backoff import Backoff, WakeAllowance
from artoo.agents.heartbeat.beat_accounting import Accounts
from artoo.agents.heartbeat.beat_grid import Beat, checked_interval
from artoo.agents.heartbeat.duties import Duty
from artoo.agents.heartbeat.scheduler import Timekeeper
from artoo.agents.heartbeat.work_loop import Labour, first_due, labour
from artoo.contracts.errors import ArtooError
from artoo.ports.clock import Clock

STARTED = "artoo has started"
_TOO_OFTEN = "woken too often: left for the next beat"


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """`interval`: seconds from 60 to 300. `items`: duties done in one pulse, at most. `wakes`: wakes with work in
    one interval, at most. `grace`: seconds that work may go on after `stop`."""

    interval: float = 120.0
    items: int = 8
    wakes: int = 6
    grace: float = 20.0


async def _never() -> str | None:
    return None


class Heartbeat:
    """One agent's scheduler. `run` it in a task group; others call `wake` and `stop`.

    Duties take turns in the order given. `backoff` is the endpoint's: agents may share it; troubles of its own an
    agent waits out alone. `paused` says why the agent may not work (None: it may). Raises ConfigurationError for an
    interval outside 60 to 300 seconds.
    """

    def __init__(
        self,
        accounts: Accounts,
        duties: Sequence[Duty],
        clock: Clock,
        *,
        backoff: Backoff,
        paused: Callable[[], Awaitable[str | None]] = _never,
        settings: HeartbeatSettings | None = None,
    ) -> None:
        self._settings = settings if settings is not None else HeartbeatSettings()
        interval = checked_interval(self._settings.interval, f"the heartbeat interval of {accounts.agent}")
        self._accounts = accounts
        self._duties = tuple(duties)
        self._clock = clock
        self._backoff = backoff
        self._troubles = backoff.separate()
        self._paused = paused
        self._allowance = WakeAllowance(self._settings.wakes, interval)
        self._timekeeper = Timekeeper(
            accounts, clock, interval, hold=self._hold, resumed=lambda: self.wake(STARTED)
        )
        self._handed: Beat | None = None
        self._cause: str | None = None
        self._told_deferred = False
        self._busy: str | None = None
        self._signal = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    def busy(self) -> str | None:
        """What the agent is at now, or None."""
        return self._busy

    def wake(self, cause: str) -> None:
        """There may be work: look at once instead of at the next beat. Cheap, and safe to call at any time."""
        self._cause = cause
        self._signal.set()

    def stop(self) -> None:
        """No further beats; what is being done gets the grace, then is cancelled. `run` returns."""
        self._stopping.set()
        self._signal.set()

    async def run(self) -> None:
        """Beats until stopped. Raises what the ledger raises: a beat that cannot be accounted for is not held."""
        async with asyncio.TaskGroup() as group:
            timekeeper = group.create_task(self._timekeeper.run(self._stopping.is_set))
            worker = group.create_task(self._work())
            await self._stopping.wait()
            if self._timekeeper.dozing:
                timekeeper.cancel()
            grace = group.create_task(self._clock.sleep(self._settings.grace))
            await asyncio.wait({worker, grace}, return_when=asyncio.FIRST_COMPLETED)
            grace.cancel()
            worker.cancel()

    async def _hold(self, beat: Beat) -> None:
        """Hands the beat to the worker, or records why not. Nothing pauses between the answer and its use."""
        self._told_deferred = False
        reason = await self._why_not()
        if reason is None and self._busy is not None:
            reason = f"still busy: {self._busy}"
        if reason is not None:
            await self._accounts.record(beat, "skipped", reason)
            return
        self._handed, self._busy = beat, "looking"
        self._signal.set()

    async def _why_not(self) -> str | None:
        try:
            paused = await self._paused()
        except ArtooError as error:
            return f"could not look: {error}"
        if self._stopping.is_set():
            return "stopping"
        if paused is not None:
            return f"paused: {paused}"
        now = self._clock.monotonic()
        return self._backoff.waiting(now) or self._troubles.waiting(now)

    async def _work(self) -> None:
        while not self._stopping.is_set() or self._handed is not None:
            await self._signal.wait()
            self._signal.clear()
            if self._handed is not None:
                beat, self._handed = self._handed, None
                await self._pulse(beat)
                self._busy = None
            elif self._cause is not None:
                await self._woken()
            if self._cause is not None:
                self._signal.set()

    async def _pulse(self, beat: Beat) -> None:
        """One beat with the agent free: idle, or work with a record before it and after it."""
        self._cause = None
        if self._stopping.is_set():
            await self._accounts.record(beat, "skipped", "stopping")
            return
        try:
            work = await first_due(self._duties)
        except ArtooError as error:
            await self._accounts.record(beat, "skipped", self._could_not_look(error))
            return
        if work is None:
            await self._accounts.record(beat, "idle")
            return
        await self._accounts.begin(beat)
        done = Labour()
        try:
            await self._labour(work, done)
        finally:
            await self._accounts.record(beat, "run", done.told(), llm_calls=done.llm_calls)

    async def _woken(self) -> None:
        """Looks at once, unless that may not be now: then the next beat will look."""
        cause, self._cause = self._cause or "", None
        reason = await self._why_not()
        if self._handed is not None:
            return
        if reason is not None:
            await self._defer(cause, reason)
            return
        self._busy = "looking"
        try:
            await self._work_between_beats(cause)
        finally:
            self._busy = None

    async def _work_between_beats(self, cause: str) -> None:
        try:
            work = await first_due(self._duties)
        except ArtooError as error:
            await self._defer(cause, self._could_not_look(error))
            return
        if work is None:
            return
        if not self._allowance.take(self._clock.monotonic()):
            await self._defer(cause, _TOO_OFTEN)
            return
        done = Labour()
        try:
            await self._labour(work, done)
        finally:
            if not done.counts_as_wake:
                self._allowance.give_back()
            await self._accounts.woken(cause, "run", done.told(), done.llm_calls)

    async def _labour(self, first: str, done: Labour) -> None:
        self._busy = first
        await labour(self._duties, done, most=self._settings.items, stop=self._stopping.is_set)
        now, at = self._clock.monotonic(), self._clock.now()
        if done.throttled is not None:
            self._backoff.failed(now, done.throttled, at=at)
        elif done.llm_calls:
            self._backoff.succeeded()
        if done.trouble is not None:
            self._troubles.failed(now, done.trouble, at=at)
        elif done.items:
            self._troubles.succeeded()

    def _could_not_look(self, error: ArtooError) -> str:
        self._troubles.failed(self._clock.monotonic(), f"could not look: {error}", at=self._clock.now())
        return f"could not look: {error}"

    async def _defer(self, cause: str, reason: str) -> None:
        """One record until the next beat: a storm of mail is no storm of records."""
        if not self._told_deferred:
            self._told_deferred = True
            await self._accounts.woken(cause, "deferred", reason)
