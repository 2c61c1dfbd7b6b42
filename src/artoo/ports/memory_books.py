"""Memory's books: what people may see of it, correct in it, and carry elsewhere. No task uses this.

Every method raises MemoryStoreError when the store is unusable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from artoo.contracts.memory import DreamReport, Megram, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import Pair
from artoo.ports.clock import Clock
from artoo.ports.dream import DreamStore

NAMED = 20


@dataclass(frozen=True, slots=True)
class Overview:
    """The pyramid: entries by level, pairs, the strongest of each advice, open proposals, recent reports."""

    levels: dict[str, int]
    pairs: int
    bytes_used: int
    strongest: dict[MemoryAction, tuple[Potentials, ...]]
    proposals: tuple[TLayerProposal, ...]
    reports: tuple[DreamReport, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """One megram's part in both sums now."""

    megram: Megram
    attention: float
    decision: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A pair's potentials, each megram's share (largest first), and both potentials over time.

    `left_out`: entries beyond the 5,000 newest, which are in the potentials but not in shares and curve.
    """

    potentials: Potentials
    shares: tuple[Share, ...]
    curve: tuple[tuple[datetime, float, float], ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: its label, how many of its requests are known, and the newest of them."""

    label: str
    requests: int
    example: str


@dataclass(slots=True)
class Findings:
    """What `examine` found. `examples` names the first few problems."""

    records: int = 0
    pairs: int = 0
    unreadable: int = 0
    missing_index: int = 0
    stray_index: int = 0
    wrong_sums: int = 0
    examples: list[str] = field(default_factory=list[str])

    @property
    def sound(self) -> bool:
        """True when nothing needs repair."""
        return not (self.unreadable or self.missing_index or self.stray_index or self.wrong_sums)

    def note(self, problem: str) -> None:
        """Keeps the first twenty problems in words."""
        if len(self.examples) < NAMED:
            self.examples.append(problem)


class MemoryBooks(Protocol):
    """What a person may do with the store, whatever engine it is on."""

    async def overview(self, now: datetime) -> Overview:
        """The pyramid. Linear in the number of entries and pairs."""
        ...

    async def explain(self, pair: Pair, now: datetime, *, shown: int = 50) -> Explanation:
        """Takes a pair's potentials apart, with the `shown` largest shares."""
        ...

    async def kinds(self) -> tuple[Kind, ...]:
        """The known kinds of request, those with the newest requests first."""
        ...

    async def rename_kind(self, old: str, new: str) -> int:
        """Moves everything that is known of one kind of request to another label, where it joins what is there.

        Returns how many entries that were.
        """
        ...

    async def forget_pair(self, pair: Pair) -> int:
        """Deletes everything that is known about a pair, rules included. Returns how many entries that were."""
        ...

    async def forget_one(self, megram_id: str) -> Megram | None:
        """Deletes one megram; None when there is none with this id."""
        ...

    async def oppose(self, megram_id: str, why: str, *, new_id: str, at: datetime) -> Megram:
        """Appends the operator's word against a megram. Raises MemoryStoreError when there is no such megram."""
        ...

    async def open_proposals(self) -> tuple[TLayerProposal, ...]:
        """What the Dreamer proposed for the T layer and nobody has answered."""
        ...

    async def answer_proposal(self, proposal_id: str, *, accept: bool) -> TLayerProposal:
        """Records the operator's answer. Raises MemoryStoreError when it is unknown or answered already."""
        ...

    async def examine(self) -> Findings:
        """Recomputes everything from the records in one snapshot and compares. Changes nothing."""
        ...

    async def repair(self) -> None:
        """Sets unreadable records aside, rebuilds indexes and sums. Safe while others write."""
        ...

    def exported(self) -> AsyncIterator[bytes]:
        """Every stored megram as one line of JSON (without the newline), by id."""
        ...

    async def imported(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Stores the megrams of `lines`: (added, known already). Importing twice adds nothing.

        Raises MemoryStoreError naming the line that is no megram; what came before it is stored.
        """
        ...

    def dreams(self, clock: Clock) -> DreamStore:
        """The Dreamer's side of the same store."""
        ...

    async def close(self) -> None:
        """Lets go of the store. Idempotent."""
        ...
