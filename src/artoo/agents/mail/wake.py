"""Wake a sleeping agent when mail or work arrives from any process, with the interval of polling.

The database counts the arrivals for each name. A write by this process wakes its waiting agents directly. A write
by another process changes SQLite's `data_version`, which is checked once a second during a wait. A wait ends only
if something arrives for the agent's own name or for any agent. Agents that write therefore do not keep each other
awake.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading
from artoo.ports.clock import Clock

POLL_SECONDS = 1.0

Mark = tuple[int, int]
"""The number of arrivals for a name, and for any agent, at a certain time."""


class Wake:
    """Lets agents wait for arrivals in a database. Use one object for each process."""

    def __init__(self, database: Database, clock: Clock, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._database = database
        self._clock = clock
        self._poll = poll_seconds

    async def mark(self, name: str) -> Mark:
        """Return the number of arrivals for `name` and for any agent. It must be read before the check for work."""
        return await self._database.read(lambda reading: _arrivals(reading, name))

    async def wait(self, name: str, mark: Mark, seconds: float) -> bool:
        """Wait until something arrives for `name` or for any agent after `mark`. Returns False if nothing arrives
        within `seconds`."""
        end = self._clock.monotonic() + seconds
        written = asyncio.Event()
        forget = self._database.on_written(written.set)
        try:
            # The version is read before the mark is compared, so that no write in between is missed.
            version = await self._database.version()
            while await self.mark(name) == mark:
                left = end - self._clock.monotonic()
                if left <= 0:
                    return False
                version = await self._until_written(written, version, left)
            return True
        finally:
            forget()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[Callable[[float], Awaitable[None]]]:
        """Yield a function that waits until any process writes, at most for the given seconds."""
        written = asyncio.Event()
        forget = self._database.on_written(written.set)
        version = await self._database.version()

        async def following(seconds: float) -> None:
            nonlocal version
            version = await self._until_written(written, version, seconds)

        try:
            yield following
        finally:
            forget()

    async def _until_written(self, written: asyncio.Event, version: int, seconds: float) -> int:
        """Return when a process has written, or after `seconds`."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            await either(written.wait(), self._clock.sleep(min(left, self._poll)))
            found = await self._database.version()
            if written.is_set() or found != version:
                version = found
                break
        written.clear()
        return version


def _arrivals(reading: Reading, name: str) -> Mark:
    rows = reading.all(
        "SELECT name, CAST(sum(count) AS bigint) AS count FROM arrivals WHERE name IN (?, '') GROUP BY name",
        (name,),
    )
    counts = {row["name"]: int(row["count"]) for row in rows}
    return counts.get(name, 0), counts.get("", 0)


async def either(first: Awaitable[object], second: Awaitable[object]) -> None:
    """Return when one of the two has ended, and cancel the other."""
    async with asyncio.TaskGroup() as group:
        done = asyncio.Event()

        async def run(waiting: Awaitable[object]) -> None:
            await waiting
            done.set()

        running = [group.create_task(run(first)), group.create_task(run(second))]
        await done.wait()
        for task in running:
            task.cancel()
