"""What can be queued for the writer. Each is applied to a ledger and says whether it took effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from artoo.contracts.memory import Level, Megram, MegramState, Origin
from artoo.control.potentials import DEMOTED_DECAY, dissonance
from artoo.memory.ledger import Ledger


class Command(Protocol):
    """One queued change."""

    def apply(self, ledger: Ledger) -> bool:
        """Changes the store through `ledger`; False when there was nothing to change."""
        ...


@dataclass(frozen=True, slots=True)
class Append:
    """Stores a megram; one whose id is there already counts as stored."""

    megram: Megram

    def apply(self, ledger: Ledger) -> bool:
        """Always takes effect."""
        ledger.add(self.megram)
        return True


@dataclass(frozen=True, slots=True)
class Touch:
    """Restarts the clocks of rules that were recalled."""

    megram_ids: tuple[str, ...]
    at: datetime

    def apply(self, ledger: Ledger) -> bool:
        """Skips rules that are gone by now, and those that were recalled later."""
        for megram_id in self.megram_ids:
            rule = ledger.get(megram_id)
            if rule is not None and (rule.last_recalled_at is None or rule.last_recalled_at < self.at):
                ledger.touch(megram_id, self.at)
        return True


@dataclass(frozen=True, slots=True)
class Oppose:
    """Appends a megram of opposite σ against a stored one; the past is never changed."""

    against: str
    content: str
    megram_id: str
    at: datetime

    def apply(self, ledger: Ledger) -> bool:
        """False when the megram to oppose does not exist."""
        target = ledger.get(self.against)
        if target is None:
            return False
        ledger.add(opposing(target, self.content, self.megram_id, self.at))
        return True


def opposing(target: Megram, content: str, megram_id: str, at: datetime) -> Megram:
    """The megram that speaks against `target`: dissonance against a rule, its mirror image against evidence."""
    if target.is_rule:
        against = dissonance(target.sigma)
        state, f, sigma, k = MegramState.DISSONANCE, against.f, against.sigma, against.k
    else:
        state, f, k = MegramState.FEEDBACK, target.f, target.k or DEMOTED_DECAY
        sigma = -target.sigma if target.sigma else -1.0
    return Megram(
        id=megram_id,
        level=Level.MEGRAM,
        created_at=at,
        space=target.space,
        entity=target.entity,
        content=content[:8_000],
        state=state,
        f=f,
        sigma=sigma,
        k=k,
        origin=Origin(intent=target.origin.intent),
    )
