"""Shared memory on PostgreSQL: both sides for tasks. Reads take one trip over the network, writes take none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from artoo.contracts.memory import Calibration, KnownRequest, Megram, MemoryAction, Potentials, SOPRecord
from artoo.contracts.tags import Pair, macro_pair
from artoo.memory.calibration import calibration
from artoo.memory.gathering import RULES
from artoo.memory.postgres import reading
from artoo.memory.postgres.books import PostgresBooks
from artoo.memory.postgres.database import Database
from artoo.memory.postgres.dreams import PostgresDreams
from artoo.memory.postgres.gathering import gather
from artoo.memory.postgres.sink import PostgresSink
from artoo.memory.service import PAIRS_OF_INTENT, TAUGHT
from artoo.memory.signal import microseconds
from artoo.memory.writing_side import WritingSide
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.recall import KNOWN_REQUESTS
from artoo.store.address import StoreAddress

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

T = TypeVar("T")


class PostgresMemory(WritingSide):
    """Implements `store.MemoryStore`. Safe to use from any thread or task.

    Opening it connects to nothing. While the store is away reads raise MemoryStoreError at once, and what is
    written is kept in `spool` on this machine, a directory, until it is back.
    """

    def __init__(self, address: StoreAddress, spool: Path, clock: Clock, ids: Ids) -> None:
        self.database = Database(address)
        super().__init__(PostgresSink(self.database, spool), clock, ids)

    @property
    def books(self) -> PostgresBooks:
        """See `store`."""
        return PostgresBooks(self.database)

    def dreams(self) -> PostgresDreams:
        """See `store`."""
        return PostgresDreams(self.database, self._clock)

    async def close(self) -> None:
        """See `ports.remember`."""
        await self.end_writing()
        await asyncio.to_thread(self.database.close)

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """See `store`."""
        found = await self._read(
            lambda connection: reading.placed(reading.ask_rules(connection, [Pair(space, entity)], RULES))
        )
        return self.recalled(found.get(0, []))

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """See `store`."""
        (found,) = await self.potentials_of([Pair(space, entity)])
        return found

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """See `ports.recall`."""
        now_us = microseconds(self._clock.now())
        live = await self._read(lambda connection: reading.sums(connection, pairs, now_us))
        return tuple(map(reading.potentials, pairs, live))

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """See `ports.recall`."""
        macro = macro_pair(kind)
        asked = tuple(dict.fromkeys((macro, *pairs)))
        now_us = microseconds(self._clock.now())
        facts = await self._read(lambda connection: gather(connection, macro, asked, now_us))
        return calibration(
            facts.live,
            self.recalled(facts.rules),
            contents=facts.contents,
            noted=facts.noted,
            known=facts.known,
            hypotheses=facts.hypotheses,
        )

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """See `ports.recall`."""
        macro, now_us = macro_pair(kind), microseconds(self._clock.now())
        live = await self._read(lambda connection: reading.worked(connection, macro, now_us, PAIRS_OF_INTENT))
        found = [entry for entry in live if entry.action is MemoryAction.EXPLOIT]
        return tuple(sorted(found, key=lambda entry: -entry.decision)[:limit])

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """See `ports.recall`."""
        return await self._read(lambda connection: reading.requests(connection, limit))

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """See `ports.recall`."""
        return tuple(await self._read(lambda connection: reading.wide_pairs(connection, limit)))

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """See `ports.recall`."""
        return tuple(await self._read(lambda connection: reading.taught(connection, task_id, TAUGHT)))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self.database.read, work)
