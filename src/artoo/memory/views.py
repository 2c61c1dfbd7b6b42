"""Define the views of memory that people are shown: the overview, an explanation, the kinds, the problems found."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.memory import DreamReport, Megram, MemoryAction, Potentials, TLayerProposal

NAMED = 20
"""Problems that are named in words."""


@dataclass(frozen=True, slots=True)
class Overview:
    """An overview of memory: entries by level, strongest pairs of each advice, open proposals, recent reports."""

    levels: dict[str, int]
    pairs: int
    bytes_used: int
    strongest: dict[MemoryAction, tuple[Potentials, ...]]
    proposals: tuple[TLayerProposal, ...]
    reports: tuple[DreamReport, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one megram in both sums now."""

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
    """The result of `examine`. `examples` names the first few problems."""

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
        """Keep the first `NAMED` problems in words."""
        if len(self.examples) < NAMED:
            self.examples.append(problem)
