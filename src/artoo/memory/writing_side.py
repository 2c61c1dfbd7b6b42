"""What both engines of shared memory do alike: whatever is written goes to one writer, behind the work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from artoo.contracts.memory import Megram, SOPRecord
from artoo.memory.commands import Append, Oppose, Touch
from artoo.memory.sink import Sink
from artoo.memory.writer import Writer, WriterStatistics
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

CLOSING_SECONDS = 30.0


class WritingSide:
    """The write side of a store. Safe to use from any thread or task."""

    def __init__(self, sink: Sink, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._writer = Writer(sink)
        self._closed = False

    @property
    def statistics(self) -> WriterStatistics:
        """What the writer has done so far. What waits on this machine's disk for a store counts as written."""
        return self._writer.statistics

    def write(self, megram: Megram) -> None:
        """See `ports.remember`."""
        self._writer.submit(Append(megram))

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """See `ports.remember`."""
        megram_id = self._ids.new()
        self._writer.submit(Oppose(rule_id, content, megram_id, self._clock.now()))
        return megram_id

    async def flush(self) -> None:
        """See `ports.remember`. On this machine's disk is enough while a store is away."""
        await asyncio.to_thread(self._writer.flush)

    async def end_writing(self) -> bool:
        """Closes the writer, once; False when it could not write all, or was closed before."""
        if self._closed:
            return False
        self._closed = True
        return await asyncio.to_thread(self._writer.close, CLOSING_SECONDS)

    def recalled(self, rules: Sequence[Megram]) -> tuple[SOPRecord, ...]:
        """C-level megrams as a planner gets them; their clock begins anew."""
        if rules:
            self._writer.submit(Touch(tuple(rule.id for rule in rules), self._clock.now()))
        return tuple(map(_sop_record, rules))


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
