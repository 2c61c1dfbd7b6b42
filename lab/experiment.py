"""Define an experiment: claims with what would refute them, written before the run; then cells and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SEEDS = (30_001, 30_002, 30_003)
"""Each makes other jobs of the same kind. No rule and no number of the product was chosen with any of these."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that a run can refute, and by what.

    `followed`: what followed when a run refuted it: which default changed, or that the claim is withdrawn and what
    the documents say instead. Written after that run, and shown only with a refutation.
    """

    text: str
    refuted_by: str
    followed: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding about a claim. `seen` has the figures."""

    claim: Claim
    holds: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table: rows of text under columns. `note` says how to read it."""

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
    """The outcome of an experiment."""

    findings: tuple[Finding, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Cell(Protocol):
    """One arm in one world: what is run `tasks` times, the same jobs as every other cell of the experiment."""

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return the rows of the jobs with these numbers. Runs inside a VirtualLoop."""
        ...


class SizedCell(Cell, Protocol):
    """A cell of public data: as many rows as there are items."""

    @property
    def size(self) -> int:
        """Return the number of items."""
        ...


@dataclass(frozen=True, slots=True)
class PublicData:
    """The data of an experiment that is not part of artoo: `how` to get it (Markdown), and the cells that it makes.

    `real_time`: its cells run programs, and so need the real clock and threads.
    """

    how: str
    cells: Callable[[Path], Mapping[str, SizedCell]]
    real_time: bool = False


Rows = Mapping[str, Sequence[object]]
"""Cell name → its rows, in order of their numbers."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment.

    `cells` by name; `judge` makes the outcome of their rows. `tasks` a cell and seed, run in pieces of `piece`.

    `real` says which parts of the product took part, `simulated` which did not. `unit`: what a row is. With `data`
    the cells are made of that, and `tasks` is the most of each.
    """

    name: str
    title: str
    question: str
    claims: tuple[Claim, ...]
    cells: Callable[[], Mapping[str, Cell]]
    judge: Callable[[Rows], Outcome]
    seeds: tuple[int, ...] = SEEDS
    tasks: int = 100
    piece: int = 100
    real: str = ""
    simulated: str = ""
    unit: str = "jobs"
    data: PublicData | None = None

    def cells_of(self, data: Path | None) -> Mapping[str, Cell]:
        """Raise ValueError for data that is needed and not given, or given and not needed."""
        if self.data is None:
            if data is not None:
                raise ValueError(f"{self.name} needs no data")
            return self.cells()
        if data is None:
            raise ValueError(f"{self.name} needs public data: {self.data.how} Then give it with --data PATH")
        return self.data.cells(data)


def no_cells() -> Mapping[str, Cell]:
    """Return no cells, for an experiment whose cells are made of data."""
    return {}
