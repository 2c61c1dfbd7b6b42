"""The writer's batches into PostgreSQL, and onto the local disk while the store is away."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.memory import Megram
from artoo.memory.codec import RecordDamaged
from artoo.memory.commands import Append, Command, Oppose, Touch, opposing
from artoo.memory.postgres import rows
from artoo.memory.postgres.database import Database, MemoryAway
from artoo.memory.postgres.spool import Spool
from artoo.memory.signal import microseconds

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

RETRY_SECONDS = 5.0
MOST_BYTES = 64 << 20
"""Kept on this machine by one process while the store is away: some 100,000 megrams."""

_TOUCH = b"""
WITH called AS (
    SELECT rule.id, given.at_us
    FROM memory_megrams AS rule JOIN unnest(%s::text[], %s::bigint[]) AS given (id, at_us) USING (id)
    WHERE rule.level = 'C' ORDER BY rule.id FOR UPDATE OF rule
)
UPDATE memory_megrams SET recalled_us = greatest(recalled_us, called.at_us)
FROM called WHERE memory_megrams.id = called.id
"""

_log = logging.getLogger(__name__)


class PostgresSink:
    """Implements `sink.Sink`. What cannot be stored now is stored later, in its order."""

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        self._spool = Spool(directory, most_bytes=MOST_BYTES)
        self._behind = True
        """Something may be held back: the spool is looked at before anything new is stored."""

    @property
    def again_after(self) -> float | None:
        """See the port."""
        return RETRY_SECONDS if self._spool.held else None

    def store(self, commands: Sequence[Command]) -> int:
        """See the port. What is kept on the local disk counts as done."""
        try:
            self._catch_up()
            return self._apply(commands) if commands else 0
        except MemoryAway as error:
            if commands:
                self._keep(commands, error)
            return len(commands)

    def close(self) -> None:
        """See the port."""
        if self._spool.held:
            _log.warning("memory: %d entries wait on this machine for the store", self._spool.held)
        self._spool.close()

    def _keep(self, commands: Sequence[Command], error: MemoryAway) -> None:
        if not self._spool.held:
            _log.warning("memory: kept on this machine until the store is back: %s", error)
        self._spool.add(commands)
        self._behind = True

    def _catch_up(self) -> None:
        if not self._behind:
            return
        stored = 0
        with closing(self._spool.batches()) as batches:
            for batch in batches:
                stored += self._salvaged(batch)
        self._behind = False
        if stored:
            _log.warning("memory: the store is back; %d entries that were kept on this machine are in it", stored)

    def _salvaged(self, batch: list[Command]) -> int:
        """Stores what can be stored; a command that never can be is named and left out."""
        try:
            done = self._apply(batch)
            if done < len(batch):
                gone = len(batch) - done
                _log.warning("memory: %d entries that were kept here speak of a memory that is gone", gone)
            return done
        except RecordDamaged as error:
            if len(batch) == 1:
                _log.warning("memory: an entry that was kept on this machine cannot be stored: %s", error)
                return 0
            middle = len(batch) // 2
            return self._salvaged(batch[:middle]) + self._salvaged(batch[middle:])

    def _apply(self, commands: Sequence[Command]) -> int:
        return self._database.write(lambda connection: _apply(connection, commands))


def append(connection: Connection, megrams: Iterable[Megram]) -> int:
    """Stores megrams that are not there yet; how many that were. The one statement of its transaction that adds."""
    return connection.execute(rows.INSERT, rows.columns(map(rows.values, megrams))).rowcount


def _apply(connection: Connection, commands: Sequence[Command]) -> int:
    """One batch. Locks come in one order: touched rules by id, new megrams by id, sums by key."""
    wanted = tuple(command.against for command in commands if isinstance(command, Oppose))
    known = {found.id: found for found in get_many(connection, wanted)} if wanted else {}
    added: dict[str, Megram] = {}
    touched: dict[str, datetime] = {}
    done = 0
    for command in commands:
        done += 1
        match command:
            case Append(megram):
                added.setdefault(megram.id, megram)
            case Touch(megram_ids, at):
                for megram_id in megram_ids:
                    latest = max(at, touched.get(megram_id, at))
                    touched[megram_id] = latest
                    if megram_id in added and added[megram_id].is_rule:
                        added[megram_id] = added[megram_id].model_copy(update={"last_recalled_at": latest})
            case Oppose(against, content, megram_id, at):
                target = known.get(against) or added.get(against)
                if target is None:
                    done -= 1
                else:
                    added.setdefault(megram_id, opposing(target, content, megram_id, at))
            case _:
                raise TypeError(f"PostgreSQL knows no {type(command).__name__}")
    if touched:
        connection.execute(_TOUCH, (list(touched), [microseconds(at) for at in touched.values()]))
    if added:
        append(connection, added.values())
    return done


def get_many(connection: Connection, megram_ids: Sequence[str]) -> list[Megram]:
    """The megrams with these ids that are there, by id."""
    found = connection.execute(
        "SELECT record, recalled_us FROM memory_megrams WHERE id = ANY(%s) ORDER BY id", (list(megram_ids),)
    )
    return [rows.megram(row) for row in found]
