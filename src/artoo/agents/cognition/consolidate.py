"""The dream cycle: what was observed three times becomes curated knowledge, the buffer and old activity are purged.

    look ─► word (optional) ─► plan ─► commit ─► file ─► shared memory ─► settle, report
                                         └──────── killed here: done at the next start ┘

The database decides: once it has committed, the file and shared memory follow, however often the process dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from artoo.agents.cognition.consolidation_plan import PendingDream, Promotion, digest, planned
from artoo.agents.cognition.knowledge_file import merged
from artoo.agents.cognition.patterns import Pattern, counted
from artoo.agents.cognition.store import Buffer, CognitionStore
from artoo.agents.heartbeat.duties import Done
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.errors import BudgetExhausted, MemoryStoreError, ModelError
from artoo.disk.whole import read_text, write_durably
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

MOST_WORDINGS = 3
"""Model calls of one cycle, at most, and only where a model for it is configured."""
RETRY_SECONDS = 3_600.0

Word = Callable[[str], Awaitable[str | None]]
"""Makes one general sentence of an observation; None: leave it as it is."""
Promote = Callable[[Promotion], Awaitable[None]]
"""Gives a promotion to shared memory, on disk when it returns. May come twice. Raises MemoryStoreError."""


@dataclass(frozen=True, slots=True)
class DreamSettings:
    """`most_observations`: buffer size that makes a cycle due; `characters`: of the knowledge file, at most."""

    interval: timedelta = timedelta(hours=24)
    most_observations: int = 50
    characters: int = 15_000


@dataclass(slots=True)
class DreamCycle:
    """Implements `Duty` for one agent. `word` None: code words what it promotes, and no model is ever called."""

    agent: str
    store: CognitionStore
    knowledge: Path
    clock: Clock
    ids: Ids
    promote: Promote
    word: Word | None = None
    settings: DreamSettings = field(default_factory=DreamSettings)
    name: str = "dream cycle"
    _next_try: float = 0.0

    async def due(self) -> str | None:
        """See Duty. Raises ActivityStoreError."""
        if self.clock.monotonic() < self._next_try:
            return None
        return self._reason(await self.store.buffer())

    async def do(self) -> Done:
        """See Duty."""
        report = await self.run()
        return Done(items=1, llm_calls=report.llm_calls)

    async def run(self) -> DreamCycleReport:
        """One cycle, now, after finishing one that was cut off. The report says what went wrong, if anything.

        Raises ActivityStoreError; then nothing has changed.
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
        patterns, calls = await self._worded(patterns)
        standing, pending = planned(
            self.agent,
            patterns,
            current,
            self.clock.now(),
            ids=[self.ids.new() for each in patterns if each.ripe],
            limit=self.settings.characters,
            observations=len(snapshot.observations),
            llm_calls=calls,
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

    async def _worded(self, patterns: Sequence[Pattern]) -> tuple[tuple[Pattern, ...], int]:
        """Lets the model word what becomes knowledge now, once a pattern; without it, code's wording stays."""
        if self.word is None:
            return tuple(patterns), 0
        worded = {each.id: each for each in patterns}
        ripe = [each for each in patterns if each.ripe and not each.wording][:MOST_WORDINGS]
        calls = 0
        for each in ripe:
            calls += 1
            try:
                wording = await self.word(each.text)
            except (ModelError, BudgetExhausted):
                break
            worded[each.id] = replace(each, wording=wording or "")
        return tuple(worded.values()), calls

    async def _finished(self, pending: PendingDream) -> DreamCycleReport:
        """The file, then shared memory, then the report. Every step may be done twice."""
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
    """Writes the file as planned; when it was changed meanwhile, merges the lines into what is there. Blocks."""
    current = read_text(path)
    there = digest(current)
    if there == pending.after:
        return
    unchanged = there == pending.base
    text = pending.text if unchanged else merged(current, pending.lines, pending.worth, limit).text
    place = path.resolve()  # of a link the file that it leads to
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(place, text.encode())
