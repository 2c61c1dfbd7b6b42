"""The machines that use these books: who is there, with which program, for which projects."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Row, Writing

_WORKER = " (worker)"
"""Stands behind the version, where `artoo status` shows it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A home on a machine. `program`: its version of artoo; `projects`: those whose tasks it works on.

    `worker`: it works for the agents of all machines (`artoo worker`).
    """

    id: str
    program: str
    projects: tuple[str, ...]
    first_seen_at: datetime
    last_seen_at: datetime

    @property
    def worker(self) -> bool:
        """True if it has no agents of its own."""
        return self.program.endswith(_WORKER)


class Machines:
    """Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seen(self, machine: str, program: str, projects: Collection[str], *, worker: bool = False) -> None:
        """Notes that a machine is at work. `program`: its version of artoo."""
        program += _WORKER if worker else ""

        def work(writing: Writing) -> None:
            writing.run(
                "INSERT INTO machines (id, name, program, projects, first_seen_us, last_seen_us)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET program = excluded.program,"
                " projects = excluded.projects, last_seen_us = excluded.last_seen_us",
                (
                    *(machine, machine, program, json.dumps(sorted(projects), ensure_ascii=False)),
                    *(writing.steady_us, writing.steady_us),
                ),
            )

        await self._database.write(work)

    async def list(self) -> tuple[Machine, ...]:
        """Those that were seen, the latest first."""
        rows = await self._database.read(
            lambda reading: reading.all("SELECT * FROM machines ORDER BY last_seen_us DESC, id LIMIT 1000")
        )
        return tuple(map(_machine, rows))


def _machine(row: Row) -> Machine:
    return Machine(
        id=row["id"],
        program=row["program"],
        projects=tuple(json.loads(row["projects"])),
        first_seen_at=moment(row["first_seen_us"]),
        last_seen_at=moment(row["last_seen_us"]),
    )
