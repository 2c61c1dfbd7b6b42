"""Running an experiment: its cells in pieces, on as many processes as there are, in any order."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from artoo.lab.catalogue import experiment
from artoo.lab.experiment import Outcome
from artoo.lab.time import VirtualLoop

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some jobs of one cell, by names alone: any process can run it."""

    experiment: str
    cell: str
    first: int
    last: int
    seed: int
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """An experiment that was run."""

    name: str
    tasks: int
    seed: int
    seconds: float
    outcome: Outcome


def run_piece(piece: Piece) -> list[object]:
    """The rows of a piece."""
    wanted = experiment(piece.experiment)
    cell = wanted.cells_of(piece.data)[piece.cell]
    loop = None if wanted.data is not None and wanted.data.real_time else VirtualLoop
    gc.disable()  # measured: a third of the time went into looking for cycles among short-lived messages
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(cell.run(piece.seed, range(piece.first, piece.last)))
    finally:
        gc.enable()
        gc.collect()


def conduct(
    name: str,
    *,
    tasks: int | None = None,
    seed: int | None = None,
    jobs: int = 1,
    data: Path | None = None,
    told: Told,
) -> Ran:
    """Runs a whole experiment. `told` hears how far it is.

    Raises KeyError for an unknown name, ValueError for data that is missing or that there is no use for.
    """
    wanted = experiment(name)
    count, start = tasks or wanted.tasks, wanted.seed if seed is None else seed
    cells = wanted.cells_of(data)
    sizes = {cell: min(count, getattr(made, "size", count)) for cell, made in cells.items()}
    pieces = [
        Piece(name, cell, first, min(size, first + wanted.piece), start, data)
        for cell, size in sizes.items()
        for first in range(0, size, wanted.piece)
    ]
    rows: dict[str, list[object]] = {cell: [] for cell in cells}
    began = time.monotonic()
    with _mapped(jobs) as each:
        for number, (piece, found) in enumerate(zip(pieces, each(pieces), strict=True), 1):
            rows[piece.cell] += found
            told(f"{name}: {number} of {len(pieces)} pieces, {time.monotonic() - began:.0f} s")
    outcome = wanted.judge(rows)
    return Ran(name, max(sizes.values()), start, time.monotonic() - began, outcome)


@contextmanager
def _mapped(jobs: int) -> Generator[Callable[[list[Piece]], Iterator[list[object]]]]:
    if jobs <= 1:
        yield lambda pieces: map(run_piece, pieces)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield lambda pieces: pool.map(run_piece, pieces)
