"""Run an agent's dream cycle, with the retry after a failure; `runtime/config/seed_config.py` says when it is due.

A pattern that was seen three times becomes curated knowledge. Old observations and sessions are deleted.

    look ─► plan ─► commit ─► file ─► shared memory ─► settle, report
                      └──────── killed here: resumed at next start ─┘

The database decides what is known. After its commit, the file and shared memory are updated to match it, even if
the process dies several times in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from artoo.agents.cognition.consolidation_plan import PendingDream, Promotion, digest, planned
from artoo.agents.cognition.knowledge_file import merged
from artoo.agents.cognition.patterns import counted
from artoo.agents.cognition.store import Buffer, CognitionStore
from artoo.agents.heartbeat.duties import Done
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.errors import MemoryStoreError
from artoo.disk.whole import read_text, write_durably
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

RETRY_SECONDS = 3_600.0

Promote = Callable[[Promotion], Awaitable[None]]
"""Writes a promotion to shared memory and returns when it is stored durably. It may be called twice for the same
promotion. Raises MemoryStoreError."""


@dataclass(frozen=True, slots=True)
class DreamSettings:
    """The limits of a dream cycle. A cycle is due when the buffer contains `most_observations`. `characters` is the
    maximum length of the knowledge file."""

    interval: timedelta = timedelta(hours=24)
    most_observations: int = 50
    characters: int = 15_000


@dataclass(slots=True)
class DreamCycle:
    """The dream cycle of one agent. Implements `Duty`. It asks no model."""

    agent: str
    store: CognitionStore
    knowledge: Path
    clock: Clock
    ids: Ids
    promote: Promote
    settings: DreamSettings = field(default_factory=DreamSettings)
    name: str = "dream cycle"
    _next_try: float = 0.0

    async def due(self) -> str | None:
        """Return a description of a cycle that is due, or None. Implements `Duty.due`. Raises
        ActivityStoreError."""
        if self.clock.monotonic() < self._next_try:
            return None
        return self._reason(await self.store.buffer())

    async def do(self) -> Done:
        """Run a cycle. Implements `Duty.do`."""
        await self.run()
        return Done(items=1)

    async def run(self) -> DreamCycleReport:
        """Finish an interrupted cycle if there is one. Otherwise run a new one. The report contains any error.

        Raises ActivityStoreError, and then nothing has changed.
        """
        if (pending := await self.store.pending()) is not None:
            return await self._finished(pending)
        try:
            current = await asyncio.to_thread(read_text, self.knowledge)
        except (OSError, UnicodeDecodeError) as error:
            return await self._put_off(f"{self.knowledge} cannot be read: {error}")
        snapshot = await self.store.snapshot()
        fresh = [seen for seen in snapshot.observations if not seen.counted]
        patterns = await asyncio.to_thread(counted, snapshot.patterns, fresh)
        standing, pending = planned(
            self.agent,
            patterns,
            current,
            self.clock.now(),
            ids=[self.ids.new() for each in patterns if each.ripe],
            limit=self.settings.characters,
            observations=len(snapshot.observations),
        )
        return await self._finished(await self.store.commit(snapshot.last, standing, pending))

    def _reason(self, buffer: Buffer) -> str | None:
        if buffer.pending:
            return "a cycle that was cut off"
        if buffer.uncounted and buffer.observations >= self.settings.most_observations:
            return f"{buffer.observations} observations"
        if not (buffer.uncounted or buffer.expired):
            return None
        since, now = buffer.last_cycle_at or buffer.oldest_at, self.clock.now()
        if since is None or since > now or now - since >= self.settings.interval:
            return "its time has come"
        return None

    async def _finished(self, pending: PendingDream) -> DreamCycleReport:
        """Write the file, then shared memory, then the report. Every step may be repeated."""
        try:
            await asyncio.to_thread(_write_knowledge, self.knowledge, pending, self.settings.characters)
            for promotion in pending.promotions:
                await self.promote(promotion)
        except (OSError, UnicodeDecodeError, MemoryStoreError) as error:
            return await self._put_off(f"what was learnt is kept and will be written later: {error}")
        await self.store.settle(pending.report)
        return pending.report

    async def _put_off(self, error: str) -> DreamCycleReport:
        self._next_try = self.clock.monotonic() + RETRY_SECONDS
        report = DreamCycleReport(agent=self.agent, at=self.clock.now(), observations=0, error=error)
        await self.store.tell(report)
        return report


def _write_knowledge(path: Path, pending: PendingDream, limit: int) -> None:
    """Write the knowledge file as planned. If it was changed since it was planned, merge the lines into its current
    text. Blocks."""
    current = read_text(path)
    there = digest(current)
    # An earlier attempt wrote the file before its process died.
    if there == pending.after:
        return
    unchanged = there == pending.base
    text = pending.text if unchanged else merged(current, pending.lines, pending.worth, limit).text
    # If the path is a symbolic link, the link is kept and the file behind it is replaced.
    place = path.resolve()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(place, text.encode())
