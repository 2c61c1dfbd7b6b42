"""An in-memory double of shared memory, with the real mathematics summed entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from artoo.contracts.memory import Calibration, Level, Megram, MemoryAction, Potentials, SOPRecord
from artoo.contracts.tags import LOCAL, Pair, macro_pair
from artoo.control.potentials import classify
from artoo.memory.accumulators import recomputed
from artoo.memory.calibration import calibration
from artoo.memory.commands import opposing
from artoo.memory.service import sop_record
from artoo.memory.signal import microseconds, signal_of
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids


class FakeMemory:
    """Implements both ports over a dict. What is written can be read at once; `megrams` holds it by id."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self.megrams: dict[str, Megram] = {}
        self.closed = False
        self._clock = clock
        self._ids = ids

    def write(self, megram: Megram) -> None:
        """Stores; an id that is there already is ignored."""
        self.megrams.setdefault(megram.id, megram)

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Appends the opposing megram; an unknown id is ignored."""
        target, megram_id = self.megrams.get(rule_id), self._ids.new()
        if target is not None:
            self.write(opposing(target, content, megram_id, self._clock.now()))
        return megram_id

    async def flush(self) -> None:
        """Nothing waits here."""

    async def close(self) -> None:
        """Notes that it was called."""
        self.closed = True

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """Rules of the pair, newest first; their clocks restart."""
        rules = sorted(
            (megram for megram in self._of(Pair(space, entity)) if megram.is_rule),
            key=lambda megram: megram.created_at,
            reverse=True,
        )[:10]
        for rule in rules:
            self.megrams[rule.id] = rule.model_copy(update={"last_recalled_at": self._clock.now()})
        return tuple(sop_record(rule) for rule in rules)

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """Summed from scratch."""
        now_us = microseconds(self._clock.now())
        live = recomputed((signal_of(megram) for megram in self._of(Pair(space, entity))), now_us)
        return Potentials(
            space=space,
            entity=entity,
            attention=live.attention,
            decision=live.decision,
            action=MemoryAction(classify(live)),
        )

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """In the order asked for."""
        return tuple([await self.query_mk(pair.space, pair.entity) for pair in pairs])

    async def calibrate(self, intent: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """As the real one does it."""
        asked = tuple(dict.fromkeys((macro_pair(intent), *pairs)))
        others = [pair for pair in asked if not pair.space.startswith("thing:")]
        rules = [rule for pair in others for rule in await self.query_c(pair.space, pair.entity)]
        told = {pair: self._latest(pair) for pair in others}
        known = [
            entry.content
            for pair in asked
            if pair.space.startswith("thing:") and (await self.query_mk(*pair)).decision > 0
            for entry in await self.known(pair.space, pair.entity)
        ]
        return calibration(await self.potentials_of(others), rules, contents=told, known=known)

    async def known(self, space: str, entity: str) -> tuple[Megram, ...]:
        """K entries of the pair, newest first."""
        entries = [megram for megram in self._of(Pair(space, entity)) if megram.level is Level.KNOWLEDGE]
        return tuple(sorted(entries, key=_age, reverse=True)[:10])

    async def alternatives(self, intent: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Exploit pairs whose megrams name the intent."""
        wanted = macro_pair(intent).space.removeprefix("intent:")
        pairs = dict.fromkeys(
            megram.pair
            for megram in self.megrams.values()
            if megram.origin.intent == wanted and not megram.space.startswith("intent:")
        )
        live = await self.potentials_of(tuple(pairs))
        best = sorted(
            (entry for entry in live if entry.action is MemoryAction.EXPLOIT), key=lambda entry: -entry.decision
        )
        return tuple(best[:limit])

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """In the order of their first megrams."""
        wide = (megram.pair for megram in self.megrams.values() if megram.entity == LOCAL and not megram.is_rule)
        return tuple(pair for pair in dict.fromkeys(wide) if pair.space.startswith("tool:"))[:limit]

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """The task's megrams, oldest first."""
        return tuple(
            sorted((megram for megram in self.megrams.values() if megram.origin.task_id == task_id), key=_age)
        )

    def _latest(self, pair: Pair) -> str:
        direct = [entry for entry in self._of(pair) if not signal_of(entry).derived]
        return max(direct, key=_age).content if direct else ""

    def _of(self, pair: Pair) -> list[Megram]:
        return [megram for megram in self.megrams.values() if megram.pair == pair]


def _age(megram: Megram) -> tuple[datetime, str]:
    return megram.created_at, megram.id
