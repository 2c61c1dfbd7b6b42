"""Duties that a test scripts, and a world whose time a test moves, with the ledger in a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from artoo.agents.heartbeat.backoff import Backoff
from artoo.agents.heartbeat.duties import Done, Duty
from artoo.agents.heartbeat.heartbeat import Heartbeat, HeartbeatSettings
from artoo.agents.heartbeat.ledger import Pulses
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database
from artoo.contracts.agents import PulseRecorded
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.testing.clock import FakeClock


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
    """A clock, the hearts that beat by it, and their ledger."""

    def __init__(self, clock: FakeClock, database: Database) -> None:
        self.clock = clock
        self.ledger = Pulses(database)
        self.told: list[Contract] = []
        self._database = database
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
        backoff = backoff or Backoff(chosen.interval, lambda: 1.0)
        more = {} if paused is None else {"paused": paused}
        heart = Heartbeat(agent, self.ledger, duties, self.clock, backoff=backoff, settings=chosen, **more)
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
                    if heart.busy is not None and self.clock.sleepers > len(self._hearts) + 1:
                        self.clock.advance(chosen.grace)

    async def settle(self) -> None:
        """Until every heart waits for the clock: for its next beat, or for the end of its work."""
        for _ in range(10):
            await asyncio.sleep(0)
        while self.clock.sleepers < len(self._hearts):  # noqa: ASYNC110 - the state is made of several objects
            await asyncio.sleep(0)

    async def live(self, seconds: float) -> None:
        """Moves time, stopping whenever somebody is due."""
        end = self.clock.monotonic() + seconds
        while True:
            await self.settle()
            step = self.clock.until_next()
            left = end - self.clock.monotonic()
            if step is None or step > left:
                self.clock.advance(max(0.0, left))
                await self.settle()
                return
            self.clock.advance(step)

    async def pulses(self, agent: str = "ada") -> list[PulseRecorded]:
        """The rows of one agent, oldest first; fails if a beat is missing or accounted for twice."""
        rows = await self._database.read(
            lambda reading: reading.all("SELECT * FROM pulses WHERE agent = ? ORDER BY number", (agent,))
        )
        expected = 1
        for row in rows:
            assert row["number"] == expected, (agent, [(one["number"], one["count"]) for one in rows])
            expected += row["count"]
        return list(reversed(await self.ledger.recent(agent, 10_000)))

    async def outcomes(self, agent: str = "ada") -> list[tuple[str, int]]:
        """What became of the beats, and of how many in a row."""
        return [(pulse.outcome, pulse.count) for pulse in await self.pulses(agent)]

    async def heard(self, *kinds: type[Contract]) -> list[Contract]:
        """The records of these kinds that went on the stream so far."""

        def publish(sender: Role, subject: str, payload: Contract) -> None:
            assert sender is Role.HEARTBEAT
            self.told.append(payload)

        await Outbox(self._database, publish).drain()
        return [record for record in self.told if isinstance(record, kinds)]
