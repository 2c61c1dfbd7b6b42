"""What an experiment is: claims with what would refute them, written before the run; then cells and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that a run can refute, and by what."""

    text: str
    refuted_by: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out about a claim. `seen` has the figures."""

    claim: Claim
    holds: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under columns. `note` says how to read it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG with its file's name (without ending)."""

    name: str
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that an experiment found."""

    findings: tuple[Finding, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Cell(Protocol):
    """One arm in one world: what is run `tasks` times, the same jobs as every other cell of the experiment."""

    async def run(self, seed: int, numbers: range) -> list[object]:
        """The rows of the jobs with these numbers. Runs inside a VirtualLoop."""
        ...


Rows = Mapping[str, Sequence[object]]
"""Cell name → its rows, in order of their numbers."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """`cells` by name; `judge` makes the outcome of their rows. `tasks` a cell, run in pieces of `piece`.

    `real` says which parts of the product took part, `simulated` which did not. Rules were looked for with the seed
    before this one, so that the pages speak of jobs that nobody had seen.
    """

    name: str
    title: str
    question: str
    claims: tuple[Claim, ...]
    cells: Callable[[], Mapping[str, Cell]]
    judge: Callable[[Rows], Outcome]
    seed: int = 20_261
    tasks: int = 1_000
    piece: int = 100
    real: str = ""
    simulated: str = ""
