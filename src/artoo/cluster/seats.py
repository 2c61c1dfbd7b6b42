"""On which machine an agent's heart beats: on one at a time, however many have its folder.

A seat is a lease. The process that holds it renews it; when a machine is gone, its seats run out and another takes
them.
"""

from __future__ import annotations

from artoo.agents.board.rows import ANYBODY
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Reading, Writing

SEAT_SECONDS = 60.0
"""How long a seat is held without being renewed; renew three times as often."""


class Seats(Stored):
    """One for each process. Every method raises ActivityStoreError."""

    @writes
    def take(self, writing: Writing, agent: str) -> bool:
        """Take the agent's seat, or renew it; False: another process holds it."""
        until = writing.steady_us + seconds_us(SEAT_SECONDS)
        row = writing.one("SELECT holder, epoch, lease_us FROM seats WHERE agent = ?", (agent,), hold="wait")
        if row is None:
            return (
                writing.insert("seats", once=True, agent=agent, holder=writing.holder, epoch=1, lease_us=until) > 0
            )
        mine = row["holder"] == writing.holder
        if not mine and row["lease_us"] > writing.steady_us and not self.database.is_dead(row["holder"]):
            return False
        epoch = row["epoch"] + (not mine)
        writing.change("seats", agent, key="agent", holder=writing.holder, lease_us=until, epoch=epoch)
        return True

    @writes
    def leave(self, writing: Writing, agent: str | None = None) -> None:
        """Give back the seat of this agent (None: of all), if this process holds it; others look at once."""
        mine = "DELETE FROM seats WHERE holder = ? AND (CAST(? AS text) IS NULL OR agent = ?)"
        if writing.run(mine, (writing.holder, agent, agent)):
            writing.arrived(ANYBODY)

    @reads
    def all(self, reading: Reading) -> dict[str, str]:
        """Return who holds which seat now: the holder, by agent."""
        rows = reading.all(
            "SELECT agent, holder FROM seats WHERE lease_us > ? ORDER BY agent", (reading.steady_us,)
        )
        return {str(row["agent"]): str(row["holder"]) for row in rows}
