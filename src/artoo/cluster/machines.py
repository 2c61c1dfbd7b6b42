"""List the machines that share the database, and store the leases (seats) of agents.

The heartbeat of an agent runs on only one machine at a time. This machine holds the seat of the agent. The holder
renews the lease. If a machine fails, its leases expire and another machine takes the seats.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from artoo.agents.board.rows import ANYBODY
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.monotonic_clock import moment, seconds_us
from artoo.agents.storage.transaction import Reading, Writing

SEAT_SECONDS = 60.0
"""Number of seconds after which a seat expires if it is not renewed. Holders should renew three times as often."""


class Seats(Stored):
    """The seats of all agents, as one process uses them. Every method raises ActivityStoreError."""

    @writes
    def take(self, writing: Writing, agent: str) -> bool:
        """Take the seat of an agent, or renew it. Returns False if another process holds it."""
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
        """Release the seat that this process holds for `agent` (None: all its seats). Notify the other machines."""
        mine = "DELETE FROM seats WHERE holder = ? AND (CAST(? AS text) IS NULL OR agent = ?)"
        if writing.run(mine, (writing.holder, agent, agent)):
            writing.arrived(ANYBODY)

    @reads
    def all(self, reading: Reading) -> dict[str, str]:
        """Return the holders of all seats that have not expired, by the names of the agents."""
        rows = reading.all(
            "SELECT agent, holder FROM seats WHERE lease_us > ? ORDER BY agent", (reading.steady_us,)
        )
        return {str(row["agent"]): str(row["holder"]) for row in rows}


_WORKER = " (worker)"
"""Suffix of the version in the entry of a worker. `artoo status` shows it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A home on a machine. `program`: the version of artoo. `projects`: the projects on whose tasks it can work."""

    id: str
    program: str
    projects: tuple[str, ...]
    first_seen_at: datetime
    last_seen_at: datetime

    @property
    def worker(self) -> bool:
        """Return whether the machine works for the agents of all machines (`artoo serve worker`)."""
        return self.program.endswith(_WORKER)


class Machines(Stored):
    """The machines that share a database. Every method raises ActivityStoreError."""

    @writes
    def seen(
        self, writing: Writing, machine: str, program: str, projects: Collection[str], *, worker: bool = False
    ) -> None:
        """Record that a machine is active. `program`: the version of artoo."""
        now = writing.steady_us
        row: dict[str, Any] = {"program": program + _WORKER * worker, "last_seen_us": now}
        row["projects"] = json.dumps(sorted(projects), ensure_ascii=False)
        if not writing.change("machines", machine, **row):
            writing.insert("machines", once=True, id=machine, name=machine, first_seen_us=now, **row)

    @reads
    def list(self, reading: Reading) -> tuple[Machine, ...]:
        """Return the machines that were ever seen, the most recent first, at most 1,000."""
        rows = reading.all("SELECT * FROM machines ORDER BY last_seen_us DESC, id LIMIT 1000")
        return tuple(
            Machine(
                id=row["id"],
                program=row["program"],
                projects=tuple(json.loads(row["projects"])),
                first_seen_at=moment(row["first_seen_us"]),
                last_seen_at=moment(row["last_seen_us"]),
            )
            for row in rows
        )
