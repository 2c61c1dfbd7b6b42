"""A ledger in memory, duties that a test scripts, and a world whose time a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from artoo.agents.heartbeat.backoff import Backoff
from artoo.agents.heartbeat.beat_accounting import UNFINISHED, Accounts, PulseLedger
from artoo.agents.heartbeat.beat_grid import Beat
from artoo.agents.heartbeat.duties import Done, Duty
from artoo.agents.heartbeat.heartbeat import Heartbeat, HeartbeatSettings
from artoo.contracts.agents import PulseRecorded, Recorded
from artoo.testing.clock import FakeClock


@dataclass
class BookLedger:
    """Implements `PulseLedger` in memory; refuses to account for a beat twice."""

    open: dict[tuple[str, int], tuple[Beat, PulseRecorded]] = field(
        default_factory=dict[tuple[str, int], tuple[Beat, PulseRecorded]]
    )
    rows: dict[str, list[tuple[Beat, Beat, PulseRecorded]]] = field(
        default_factory=dict[str, list[tuple[Beat, Beat, PulseRecorded]]]
    )
    told: list[Recorded] = field(default_factory=list[Recorded])

    async def last(self, agent: str) -> Beat | None:
        done = [last for _, last, _ in self.rows.get(agent, ())]
        begun = [beat for (name, _), (beat, _) in self.open.items() if name == agent]
        return max((*done, *begun), key=lambda beat: beat.number, default=None)

    async def begin(self, beat: Beat, pulse: PulseRecorded) -> None:
        assert pulse.why == UNFINISHED
        self.open[pulse.agent, beat.number] = (beat, pulse)

    async def record(self, beat: Beat, pulse: PulseRecorded, *, last: Beat | None = None) -> None:
        self.open.pop((pulse.agent, beat.number), None)
        self.rows.setdefault(pulse.agent, []).append((beat, last or beat, pulse))

    async def cut_off(self, agent: str, why: str) -> int:
        cut = [key for key in self.open if key[0] == agent]
        for key in cut:
            beat, pulse = self.open[key]
            await self.record(beat, pulse.model_copy(update={"why": why}))
        return len(cut)

    async def tell(self, agent: str, record: Recorded) -> None:
        self.told.append(record)

    def pulses(self, agent: str = "ada") -> list[PulseRecorded]:
        """The records of one agent, in the order of their beats."""
        return [pulse for _, _, pulse in sorted(self.rows.get(agent, ()), key=lambda row: row[0].number)]

    def outcomes(self, agent: str = "ada") -> list[str]:
        """What became of each record."""
        return [pulse.outcome for pulse in self.pulses(agent)]

    def assert_complete(self, agent: str = "ada") -> int:
        """Every beat from 1 on is accounted for once; returns how many there were."""
        expected = 1
        for first, last, pulse in sorted(self.rows[agent], key=lambda row: row[0].number):
            assert first.number == expected, f"beat {expected} of {agent}: {pulse}"
            assert last.number == first.number + pulse.count - 1
            expected = last.number + 1
        assert not [key for key in self.open if key[0] == agent]
        return expected - 1


class ScriptedDuty:
    """Implements `Duty`: `waiting` things to do, each taking `seconds` and one model call; `results` come first."""

    def __init__(self, clock: FakeClock, name: str = "mail", *, seconds: float = 0.0) -> None:
        self._clock = clock
        self._name = name
        self.seconds = seconds
        self.waiting = 0
        self.results: list[Done | Exception] = []
        self.throttled = False
        self.looks = 0
        self.llm_calls = 0
        self.running = 0
        self.most_at_once = 0
        self.at: list[float] = []

    @property
    def name(self) -> str:
        return self._name

    async def due(self) -> str | None:
        self.looks += 1
        return f"{self.waiting} waiting" if self.waiting else None

    async def do(self) -> Done:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        self.at.append(self._clock.monotonic())
        try:
            if self.seconds:
                await self._clock.sleep(self.seconds)
            return self._ended()
        finally:
            self.running -= 1

    def _ended(self) -> Done:
        self.llm_calls += 1
        if self.throttled:
            return Done(llm_calls=1, throttled="429: slow down")
        result = self.results.pop(0) if self.results else Done(items=1, llm_calls=1)
        if isinstance(result, Exception):
            raise result
        self.waiting = max(0, self.waiting - result.items)
        return result


class World:
    """A clock and the hearts that beat by it."""

    def __init__(self, clock: FakeClock, ledger: PulseLedger) -> None:
        self.clock = clock
        self.ledger = ledger
        self._hearts: list[Heartbeat] = []

    @asynccontextmanager
    async def beating(
        self,
        duties: Sequence[Duty],
        agent: str = "ada",
        *,
        settings: HeartbeatSettings | None = None,
        paused: Callable[[], Awaitable[str | None]] | None = None,
        backoff: Backoff | None = None,
    ) -> AsyncGenerator[Heartbeat]:
        """A heart that beats inside the context, with full jitter; it is stopped at the end."""
        chosen = settings or HeartbeatSettings()
        accounts = Accounts(agent, self.ledger, self.clock)
        backoff = backoff or Backoff(chosen.interval, lambda: 1.0)
        if paused is None:
            heart = Heartbeat(accounts, duties, self.clock, backoff=backoff, settings=chosen)
        else:
            heart = Heartbeat(accounts, duties, self.clock, backoff=backoff, settings=chosen, paused=paused)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(heart.run())
            self._hearts.append(heart)
            try:
                await self.settle()
                yield heart
            finally:
                self._hearts.remove(heart)
                heart.stop()
                while not running.done():
                    await asyncio.sleep(0)
                    if self.clock.sleepers > len(self._hearts):
                        self.clock.advance(chosen.grace)

    async def settle(self) -> None:
        """Until every heart waits for its next beat, and whoever is at work waits for the clock."""
        for _ in range(5):
            await asyncio.sleep(0)
        while not self._settled():  # noqa: ASYNC110 - the state is made of several objects
            await asyncio.sleep(0)

    def _settled(self) -> bool:
        at_work = sum(heart.busy is not None for heart in self._hearts)
        return self.clock.sleepers >= len(self._hearts) + at_work

    async def live(self, seconds: float) -> None:
        """Moves time, stopping whenever somebody is due."""
        end = self.clock.monotonic() + seconds
        while True:
            await self.settle()
            step = self.clock.until_next()
            left = end - self.clock.monotonic()
            if step is None or step > left:
                self.clock.advance(max(0.0, left))
                return
            self.clock.advance(step)
