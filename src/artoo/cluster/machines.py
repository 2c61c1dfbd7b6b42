"""The machines that use this database: who is there, with which program, for which projects."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Reading, Writing

_WORKER = " (worker)"
"""Stands behind the version, where `artoo status` shows it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A home on a machine. `program`: its version of artoo; `projects`: those whose tasks it works on."""

    id: str
    program: str
    projects: tuple[str, ...]
    first_seen_at: datetime
    last_seen_at: datetime

    @property
    def worker(self) -> bool:
        """True if it works for the agents of all machines (`artoo worker`), and has none of its own."""
        return self.program.endswith(_WORKER)


class Machines(Stored):
    """Every method raises ActivityStoreError."""

    @writes
    def seen(
        self, writing: Writing, machine: str, program: str, projects: Collection[str], *, worker: bool = False
    ) -> None:
        """Note that a machine is at work. `program`: its version of artoo."""
        listed = json.dumps(sorted(projects), ensure_ascii=False)
        now = {
            "program": program + (_WORKER if worker else ""),
            "projects": listed,
            "last_seen_us": writing.steady_us,
        }
        if not writing.change("machines", machine, **now):
            writing.insert("machines", once=True, id=machine, name=machine, first_seen_us=writing.steady_us, **now)

    @reads
    def list(self, reading: Reading) -> tuple[Machine, ...]:
        """Return those that were seen, the latest first."""
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
