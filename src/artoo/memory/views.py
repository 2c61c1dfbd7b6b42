"""The records that `artoo memory` shows, such as overview, explanation, kinds and findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.memory import DreamReport, Megram, MemoryAction, Potentials, TLayerProposal

NAMED = 20
"""Maximum number of problems that are described in words."""


@dataclass(frozen=True, slots=True)
class Overview:
    """An overview of memory. It has the number of entries by level, the strongest pairs for each action, the open
    proposals, and the latest reports."""

    levels: dict[str, int]
    pairs: int
    bytes_used: int
    strongest: dict[MemoryAction, tuple[Potentials, ...]]
    proposals: tuple[TLayerProposal, ...]
    reports: tuple[DreamReport, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """A megram, and how much it contributes to both sums at present."""

    megram: Megram
    attention: float
    decision: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The potentials of a pair, the contribution of each megram (the largest first), and both potentials over time.

    `left_out`: the number of entries that are older than the 5,000 newest. They count in the potentials, but are
    not in the contributions and the curve.
    """

    potentials: Potentials
    shares: tuple[Share, ...]
    curve: tuple[tuple[datetime, float, float], ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request: its label, the number of its known requests, and the newest of these."""

    label: str
    requests: int
    example: str


@dataclass(slots=True)
class Findings:
    """The result of `examine`. `examples` describe the first few problems."""

    records: int = 0
    pairs: int = 0
    unreadable: int = 0
    missing_index: int = 0
    wrong_sums: int = 0
    examples: list[str] = field(default_factory=list[str])

    @property
    def sound(self) -> bool:
        """Return whether no repair is needed."""
        return not (self.unreadable or self.missing_index or self.wrong_sums)

    def note(self, problem: str) -> None:
        """Add a problem to the examples, unless there are already `NAMED` of them."""
        if len(self.examples) < NAMED:
            self.examples.append(problem)
