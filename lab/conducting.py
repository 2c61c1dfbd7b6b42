"""Run an experiment: its cells in pieces, with each of its seeds, on as many processes as asked for."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from lab.catalogue import experiment
from lab.experiment import Outcome
from lab.time import VirtualLoop

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A number of jobs of one cell, by names alone: any process can run it."""

    experiment: str
    cell: str
    first: int
    last: int
    seed: int
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The rows of a piece, and the seconds of processor time that they took."""

    rows: list[object]
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Order:
    """An experiment to be run: `tasks` a cell and seed, and `seeds`, are its own where None.

    `kept`: a folder for the rows of finished pieces, so that an interrupted run goes on where it was. Rows of
    another version of artoo must not lie there.
    """

    name: str
    tasks: int | None = None
    seeds: tuple[int, ...] | None = None
    data: Path | None = None
    kept: Path | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """An experiment that was run. `tasks` of each cell with each seed.

    `outcome` is of all seeds together; `by_seed` says for each seed alone which findings hold, in their order.
    """

    name: str
    tasks: int
    seeds: tuple[int, ...]
    seconds: float
    processor_seconds: float
    outcome: Outcome
    by_seed: tuple[tuple[bool, ...], ...] = ()


def run_piece(piece: Piece) -> list[object]:
    """Return the rows of a piece."""
    wanted = experiment(piece.experiment)
    cell = wanted.cells_of(piece.data)[piece.cell]
    loop = None if wanted.data is not None and wanted.data.real_time else VirtualLoop
    gc.disable()  # it would look for cycles among short-lived messages again and again, and find none
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(cell.run(piece.seed, range(piece.first, piece.last)))
    finally:
        gc.enable()
        gc.collect()


def conduct(order: Order, *, jobs: int = 1, told: Told) -> Ran:
    """Run one experiment on `jobs` processes; `told` hears how far it is.

    Raises KeyError for an unknown name, ValueError for data that is missing or that there is no use for.
    """
    wanted, began = experiment(order.name), time.monotonic()
    seeds, cells = order.seeds or wanted.seeds, wanted.cells_of(order.data)
    count = order.tasks or wanted.tasks
    sizes = {name: min(count, getattr(cell, "size", count)) for name, cell in cells.items()}
    tasks = max(sizes.values())
    pieces = [
        Piece(order.name, name, first, min(at * tasks + size, first + wanted.piece), seed, order.data)
        for at, seed in enumerate(seeds)
        for name, size in sizes.items()
        for first in range(at * tasks, at * tasks + size, wanted.piece)
    ]
    rows = {seed: {name: list[object]() for name in cells} for seed in seeds}
    spent = 0.0
    for number, (piece, done) in enumerate(zip(pieces, _done(pieces, jobs, order.kept), strict=True), 1):
        rows[piece.seed][piece.cell] += done.rows
        spent += done.processor_seconds
        told(f"{order.name}: {number} of {len(pieces)} pieces, {time.monotonic() - began:.0f} s")
    together = {name: [row for seed in seeds for row in rows[seed][name]] for name in cells}
    outcome = wanted.judge(together)
    alone = [wanted.judge(rows[seed]).findings for seed in seeds] if len(seeds) > 1 else []
    return Ran(
        order.name,
        tasks,
        seeds,
        time.monotonic() - began,
        spent,
        outcome,
        tuple(tuple(each.holds for each in found) for found in alone),
    )


def _done(pieces: list[Piece], jobs: int, kept: Path | None) -> Iterator[Done]:
    timed = partial(_timed, kept=kept)
    if jobs <= 1:
        yield from map(timed, pieces)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
        yield from workers.map(timed, pieces)


def _timed(piece: Piece, kept: Path | None) -> Done:
    at = None if kept is None else kept / f"{hashlib.sha256(repr(piece).encode()).hexdigest()[:32]}.pickle"
    if at is not None and at.exists():
        found: Done = pickle.loads(at.read_bytes())  # written by this user's own earlier run
        return found
    worked = _worked()
    done = Done(run_piece(piece), _worked() - worked)
    if at is not None:
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(pickle.dumps(done))
    return done


def _worked() -> float:
    """Return the seconds of processor time of this process."""
    times = os.times()
    return times.user + times.system
