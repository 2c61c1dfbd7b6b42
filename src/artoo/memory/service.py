"""Shared memory (R5): the read and write ports over one LMDB store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, KnownRequest, Megram, Potentials, SOPRecord
from artoo.contracts.tags import Pair, macro_pair
from artoo.memory import keys, reading
from artoo.memory.books import EmbeddedBooks
from artoo.memory.calibration import calibration
from artoo.memory.environment import FIRST_MAP_BYTES, Environment, Transaction, open_environment
from artoo.memory.gathering import RULES, Facts, gather
from artoo.memory.maintenance import Maintenance
from artoo.memory.signal import microseconds
from artoo.memory.sink import LedgerSink
from artoo.memory.verify import upgrade
from artoo.memory.writing_side import WritingSide
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.recall import KNOWN_REQUESTS

PAIRS_OF_INTENT = 1_000
TAUGHT = 1_000

T = TypeVar("T")


class SharedMemory(WritingSide):
    """Implements `store.MemoryStore`. Safe to use from any thread or task."""

    def __init__(self, environment: Environment, clock: Clock, ids: Ids) -> None:
        super().__init__(LedgerSink(environment), clock, ids)
        self.environment = environment

    @classmethod
    def open(cls, directory: Path, clock: Clock, ids: Ids, *, map_bytes: int = FIRST_MAP_BYTES) -> SharedMemory:
        """Opens the store in `directory` (made when absent). Raises MemoryStoreError when it is unusable."""
        environment = open_environment(directory, map_bytes=map_bytes)
        try:
            upgrade(environment)
        except MemoryStoreError:
            environment.close()
            raise
        return cls(environment, clock, ids)

    @property
    def books(self) -> EmbeddedBooks:
        """See `store`."""
        return EmbeddedBooks(self.environment)

    def dreams(self) -> Maintenance:
        """See `store`."""
        return Maintenance(self.environment, self._clock)

    async def close(self) -> None:
        """See `ports.remember`."""
        # A process that was stopped while it wrote keeps the store's lock: then the rest is given up.
        if await self.end_writing():
            await asyncio.to_thread(self.environment.close)

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """The C-level rules of a pair, newest first, at most 10. Restarts the clock of those returned."""
        pair = Pair(space, entity)
        return self.recalled(await self._read(lambda transaction: reading.rules(transaction, pair, RULES)))

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """The live potentials of a pair over its M and K entries; zero and Ignore when it has none."""
        (found,) = await self.potentials_of([Pair(space, entity)])
        return found

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """See `ports.recall`."""

        def work(transaction: Transaction) -> tuple[Potentials, ...]:
            now_us = microseconds(self._clock.now())
            return tuple(reading.potentials(transaction, pair, now_us) for pair in pairs)

        return await self._read(work)

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """See `ports.recall`."""
        macro = macro_pair(kind)
        asked = tuple(dict.fromkeys((macro, *pairs)))

        def work(transaction: Transaction) -> Facts:
            return gather(transaction, macro, asked, microseconds(self._clock.now()))

        facts = await self._read(work)
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
        macro = macro_pair(kind)

        def work(transaction: Transaction) -> list[Potentials]:
            now_us = microseconds(self._clock.now())
            return reading.exploits(transaction, macro, now_us, PAIRS_OF_INTENT)

        found = await self._read(work)
        return tuple(sorted(found, key=lambda entry: -entry.decision)[:limit])

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """See `ports.recall`."""
        return await self._read(lambda transaction: reading.requests(transaction, limit))

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """See `ports.recall`."""
        return tuple(await self._read(lambda transaction: reading.wide_pairs(transaction, limit)))

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """See `ports.recall`."""
        prefix = b"t|" + keys.escape(task_id) + b"|"
        return tuple(await self._read(lambda transaction: reading.named(transaction, prefix, TAUGHT)))

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.to_thread(self.environment.read, work)
