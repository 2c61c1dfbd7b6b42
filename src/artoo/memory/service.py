"""Shared memory (R5) for roles, that is, recall and remember over the store, with its closing timeout.

Every engine can be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from artoo.contracts.memory import Calibration, KnownRequest, Megram, Potentials, SOPRecord
from artoo.contracts.tags import Pair, macro_pair
from artoo.memory import reading
from artoo.memory.books import Books
from artoo.memory.calibration import calibration
from artoo.memory.commands import Append, Oppose, Touch
from artoo.memory.dreams import Dreams
from artoo.memory.engines import engine_at
from artoo.memory.gathering import MOST_RULES, gather
from artoo.memory.signal import microseconds
from artoo.memory.spool import MemorySpool, Sink
from artoo.memory.writer import Writer, WriterStatistics
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.recall import KNOWN_REQUESTS
from artoo.store.address import StoreAddress
from artoo.store.query import Engine, Query

CLOSING_SECONDS = 30.0
PAIRS_OF_INTENT = 1_000
TAUGHT = 1_000

T = TypeVar("T")


class SharedMemory:
    """The implementation of `ports.recall` and `ports.remember`. It may be used in any thread or task.

    `spool`: keeps writes until a shared store can be reached. It is None for a local store, which can always be
    reached.
    """

    def __init__(self, engine: Engine, clock: Clock, ids: Ids, spool: MemorySpool | None = None) -> None:
        self.engine = engine
        self._clock = clock
        self._ids = ids
        self._writer = Writer(Sink(engine, spool))
        self._closed = False

    @classmethod
    def open(cls, directory: Path, clock: Clock, ids: Ids) -> SharedMemory:
        """Open the store in `directory`, which is made if it does not exist. Raises MemoryStoreError if the store
        cannot be used."""
        return cls(engine_at(directory), clock, ids)

    @classmethod
    def shared(cls, address: StoreAddress, spool: Path, clock: Clock, ids: Ids) -> SharedMemory:
        """Open a shared store without connecting to it. As long as the store cannot be reached, reads raise
        MemoryStoreError at once, and writes are kept in the directory `spool`. Raises ConfigurationError if the
        driver of the database is not installed."""
        return cls(engine_at(address), clock, ids, MemorySpool(spool))

    @property
    def books(self) -> Books:
        """Return the operations for people. They use the engine of this object, so the caller must not close
        them."""
        return Books(self.engine)

    @property
    def statistics(self) -> WriterStatistics:
        """Return the counts of the writer so far. Entries in the spool of this machine count as written."""
        return self._writer.statistics

    def dreams(self) -> Dreams:
        """Return the part of the store that the Dreamer uses."""
        return Dreams(self.engine, self._clock)

    def write(self, megram: Megram) -> None:
        """Implement `Remember.write`."""
        self._writer.submit(Append(megram))

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Implement `Remember.record_negative_feedback`."""
        megram_id = self._ids.new()
        self._writer.submit(Oppose(rule_id, content, megram_id, self._clock.now()))
        return megram_id

    async def flush(self) -> None:
        """Implement `Remember.flush`. While a store cannot be reached, entries that are on this machine's disk
        count as flushed."""
        await asyncio.to_thread(self._writer.flush)

    async def close(self) -> None:
        """Implement `Remember.close`."""
        if self._closed:
            return
        self._closed = True
        # If a process is suspended during a write, it keeps the lock of the store. After the timeout, the entries
        # that are left are given up.
        if await asyncio.to_thread(self._writer.close, CLOSING_SECONDS):
            await asyncio.to_thread(self.engine.close)

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """Return the rules of level C about a pair, newest first, at most 10. The time of their last recall is
        set."""
        pair = Pair(space, entity)
        return self._recalled(await self._read(lambda query: reading.rules(query, pair, MOST_RULES)))

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """Return the present potentials of a pair, computed from its entries of the levels M and K. If there are no
        entries, they are zero, with the action Ignore."""
        (found,) = await self.potentials_of([Pair(space, entity)])
        return found

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Implement `Recall.potentials_of`."""
        return tuple(await self._read(lambda query: reading.potentials(query, pairs, self._now_us())))

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Implement `Recall.calibrate`."""
        macro = macro_pair(kind)
        # The pair of the intent comes first, and duplicates are removed.
        asked = tuple(dict.fromkeys((macro, *pairs)))
        facts = await self._read(lambda query: gather(query, macro, asked, self._now_us()))
        return calibration(
            facts.live,
            self._recalled(facts.rules),
            contents=facts.contents,
            noted=facts.noted,
            known=facts.known,
            hypotheses=facts.hypotheses,
        )

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Implement `Recall.alternatives`."""
        macro = macro_pair(kind)
        found = await self._read(lambda query: reading.exploits(query, macro, self._now_us(), PAIRS_OF_INTENT))
        return tuple(sorted(found, key=lambda entry: -entry.decision)[:limit])

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Implement `Recall.requests`."""
        return await self._read(lambda query: reading.requests(query, limit))

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Implement `Recall.tool_pairs`."""
        return tuple(await self._read(lambda query: reading.local_pairs(query, "tool:", limit)))

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Implement `Recall.taught_by`."""
        return tuple(await self._read(lambda query: reading.taught(query, task_id, TAUGHT)))

    def _recalled(self, rules: Sequence[Megram]) -> tuple[SOPRecord, ...]:
        """Convert rules for a planner. The time of their last recall is set."""
        if rules:
            self._writer.submit(Touch(tuple(rule.id for rule in rules), self._clock.now()))
        return tuple(map(_sop_record, rules))

    def _now_us(self) -> int:
        return microseconds(self._clock.now())

    async def _read(self, work: Callable[[Query], T]) -> T:
        return await asyncio.to_thread(self.engine.read, work)


def _sop_record(rule: Megram) -> SOPRecord:
    return SOPRecord(
        id=rule.id,
        space=rule.space,
        entity=rule.entity,
        content=rule.content,
        f=rule.f,
        sigma=rule.sigma,
        created_at=rule.created_at,
        last_recalled_at=rule.last_recalled_at,
        sources=rule.origin.sources,
    )
