"""The record of a lesson before memory stores it, with subject, weight and reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from artoo.contracts.memory import Level, Megram, MegramState, Origin, StoredLevel
from artoo.contracts.tags import Pair
from artoo.control.potentials import Stimulus


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson that the solver or the Dreamer learnt."""

    pair: Pair
    state: MegramState
    stimulus: Stimulus
    content: str
    level: StoredLevel = Level.MEGRAM

    def megram(self, megram_id: str, at: datetime, origin: Origin) -> Megram:
        """Return the lesson as a megram, the entry that memory stores, with its origin."""
        return Megram(
            id=megram_id,
            level=self.level,
            created_at=at,
            space=self.pair.space,
            entity=self.pair.entity,
            content=self.content,
            state=self.state,
            f=self.stimulus.f,
            sigma=self.stimulus.sigma,
            k=self.stimulus.k,
            origin=origin,
        )
