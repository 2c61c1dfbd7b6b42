"""Publish records on the stream that were stored in the transaction of the change, and lose none.

A record that was published and not yet deleted when the process died is published once more, under the same
`event`, so that a reader can count each event once.
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
"""How often it is looked for what other processes left."""

ORPHANED_SECONDS = 60.0
"""After this long another process publishes what the one that wrote it has not."""


class Publish(Protocol):
    """Put a record on the stream; called on the event loop, never waits.

    `subject` is what the record is about: a board task's id, a mail's id, or an agent's name. A record may come a
    second time after a crash; its `event` (a Mail's `id`) is then the same.
    """

    def __call__(self, sender: Role, subject: str, payload: Contract) -> None: ...


class _Waiting(NamedTuple):
    sequence: int
    role: Role
    subject: str
    payload: Contract


class Outbox:
    """A publisher of the records of this home's processes, and of dead processes of other homes."""

    def __init__(
        self, database: Database, publish: Publish, *, is_dead: Callable[[str], bool] | None = None
    ) -> None:
        self._database = database
        self._publish = publish
        self._is_dead = is_dead or database.is_dead
        self._one_at_a_time = asyncio.Lock()

    async def drain(self) -> int:
        """Publish all pending records in order; how many. Raises ActivityStoreError."""
        async with self._one_at_a_time:
            total = 0
            while waiting := await self._database.read(self._due):
                # Published before they are deleted: a crash in between repeats a record and loses none.
                for item in waiting:
                    self._publish(item.role, item.subject, item.payload)
                await self._database.write(lambda writing, done=waiting: _take_out(writing, done))
                total += len(waiting)
            return total

    async def run(self, clock: Clock) -> None:
        """Publish records from now on, until cancelled; those that earlier processes left come first.

        No one tells this process when another one has ended that wrote something, so it looks now and then.
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
        # One process publishes for its home: what a command has written comes before what followed from it.
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
