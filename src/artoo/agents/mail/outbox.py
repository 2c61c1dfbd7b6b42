"""Publish database changes on the stream after their transaction, so that no record is lost.

If the process dies after it published a record and before it deleted the record, the record is published again. It
then has the same `event`, so that a reader can count each event once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.mail.wake import either
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts import agents
from artoo.contracts.base import Contract
from artoo.contracts.errors import ActivityStoreError
from artoo.contracts.roles import Role
from artoo.ports.clock import Clock

BATCH = 256
OTHERS_SECONDS = 2.0
"""Number of seconds between two checks for records of other processes."""

ORPHANED_SECONDS = 60.0
"""Number of seconds after which a process publishes a record that the process which wrote it has not published."""


class Publish(Protocol):
    """Publishes a record on the stream. It is called on the event loop, and never waits.

    `subject`: the id of the board task or letter, or the name of the agent, with which the record deals. After a
    crash, a record may be published twice with the same `event` (for a Mail, with the same `id`).
    """

    def __call__(self, sender: Role, subject: str, payload: Contract) -> None: ...


class _Waiting(NamedTuple):
    sequence: int
    role: Role
    subject: str
    payload: Contract


class Outbox:
    """Publishes the records of the processes of this home, and those of dead processes of other homes."""

    def __init__(
        self, database: Database, publish: Publish, *, is_dead: Callable[[str], bool] | None = None
    ) -> None:
        self._database = database
        self._publish = publish
        self._is_dead = is_dead or database.is_dead
        self._one_at_a_time = asyncio.Lock()

    async def drain(self) -> int:
        """Publish all records that are not published yet, in order. Return their number. Raises
        ActivityStoreError."""
        async with self._one_at_a_time:
            total = 0
            while waiting := await self._database.read(self._due):
                # A record is deleted after it was published, so that a crash in between repeats the record instead
                # of losing it.
                for item in waiting:
                    self._publish(item.role, item.subject, item.payload)
                await self._database.write(lambda writing, done=waiting: _take_out(writing, done))
                total += len(waiting)
            return total

    async def run(self, clock: Clock) -> None:
        """Publish records until cancelled. The first are those that earlier processes left.

        No notification comes when another process ends, so this also checks for its records periodically.
        """
        written = asyncio.Event()
        forget = self._database.on_written(written.set)
        try:
            while True:
                written.clear()
                await self.drain()
                await either(written.wait(), clock.sleep(OTHERS_SECONDS))
        finally:
            forget()

    def _due(self, reading: Reading) -> list[_Waiting]:
        holders = reading.names("SELECT DISTINCT holder FROM events")
        # One process publishes the records of the whole home, so that the records of a command come before those of
        # its consequences.
        home = machine_of(reading.holder)
        ours = [holder for holder in holders if machine_of(holder) == home or self._is_dead(holder)]
        orphaned = reading.steady_us - seconds_us(ORPHANED_SECONDS)
        marks = ", ".join("?" * len(ours)) or "''"
        rows = reading.all(
            f"SELECT * FROM events WHERE holder IN ({marks}) OR since_us <= ? ORDER BY sequence LIMIT ?",
            (*ours, orphaned, BATCH),
        )
        return [
            _Waiting(row["sequence"], Role(row["role"]), row["subject"], _payload(row["kind"], row["payload"]))
            for row in rows
        ]


def _take_out(writing: Writing, published: list[_Waiting]) -> None:
    for item in published:
        writing.run("DELETE FROM events WHERE sequence = ?", (item.sequence,))


def _payload(kind: str, text: str) -> Contract:
    found: object = getattr(agents, kind, None)
    if not (isinstance(found, type) and issubclass(found, Contract)):
        raise ActivityStoreError(
            f"The activity database holds a record of kind {kind!r}, which this artoo does not know; update artoo."
        )
    return found.model_validate_json(text)
