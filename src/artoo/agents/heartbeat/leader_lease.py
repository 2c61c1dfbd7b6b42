"""On which machine an agent's heart beats: on one at a time, however many have its folder.

A seat is a lease. Whoever holds it renews it; when a machine is gone, its seats run out and another takes them.
"""

from __future__ import annotations

from artoo.agents.board.rows import ANYBODY
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Writing

SEAT_SECONDS = 60.0
"""How long a seat is held without being renewed; renew three times as often."""


class Seats:
    """One for each process. Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, agent: str) -> bool:
        """Takes the agent's seat, or renews it; False: another process holds it."""

        def work(writing: Writing) -> bool:
            until = writing.steady_us + seconds_us(SEAT_SECONDS)
            row = writing.one("SELECT holder, lease_us FROM seats WHERE agent = ?", (agent,), hold="wait")
            if row is None:
                return (
                    writing.run(
                        "INSERT INTO seats (agent, holder, epoch, lease_us) VALUES (?, ?, 1, ?)"
                        " ON CONFLICT (agent) DO NOTHING",
                        (agent, writing.holder, until),
                    )
                    > 0
                )
            if row["holder"] == writing.holder:
                writing.run("UPDATE seats SET lease_us = ? WHERE agent = ?", (until, agent))
                return True
            if row["lease_us"] > writing.steady_us and not self._database.is_dead(row["holder"]):
                return False
            writing.run(
                "UPDATE seats SET holder = ?, lease_us = ?, epoch = epoch + 1 WHERE agent = ?",
                (writing.holder, until, agent),
            )
            return True

        return await self._database.write(work)

    async def leave(self, agent: str | None = None) -> None:
        """Give back the seat of this agent (None: of all), if this process holds it; others look at once."""

        def work(writing: Writing) -> None:
            mine = "DELETE FROM seats WHERE holder = ? AND (CAST(? AS text) IS NULL OR agent = ?)"
            if writing.run(mine, (writing.holder, agent, agent)):
                writing.arrived(ANYBODY)

        await self._database.write(work)

    async def all(self) -> dict[str, str]:
        """Who holds which seat now: the holder, by agent."""
        rows = await self._database.read(
            lambda reading: reading.all(
                "SELECT agent, holder FROM seats WHERE lease_us > ? ORDER BY agent", (reading.steady_us,)
            )
        )
        return {str(row["agent"]): str(row["holder"]) for row in rows}
