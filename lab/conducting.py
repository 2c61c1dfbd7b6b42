"""Running experiments: their cells in pieces, on as many processes as there are, each piece once."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from lab.catalogue import experiment
from lab.experiment import Alike, Cell, Outcome
from lab.time import VirtualLoop

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
class Done:
    """The rows of a piece, and the seconds that processors worked for them."""

    rows: list[object]
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Ran:
    """An experiment that was run.

    `seconds`: on the clock, since the experiment before it was done. `processor_seconds`: of all processes
    together, without their start; a cell that an experiment before it had run too is counted there.
    """

    name: str
    tasks: int
    seed: int
    seconds: float
    processor_seconds: float
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Order:
    """An experiment that is to be run: `tasks` a cell and the `seed` are its own where nothing is said."""

    name: str
    tasks: int | None = None
    seed: int | None = None
    data: Path | None = None


def run_piece(piece: Piece) -> list[object]:
    """The rows of a piece."""
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
    """Runs one experiment: see `conduct_all`."""
    (ran,) = conduct_all([order], jobs=jobs, told=told)
    return ran


def conduct_all(orders: Sequence[Order], *, jobs: int = 1, told: Told) -> Iterator[Ran]:
    """Runs experiments in their order, on `jobs` processes, while what it returns is read. `told` hears of it.

    All pieces are handed out at the beginning, so that no processor waits while an experiment is judged, and what
    several cells need is run once. Raises at once KeyError for an unknown name, ValueError for data that is
    missing or that there is no use for.
    """
    return _conducted([_plan(order) for order in orders], jobs, told)


def _conducted(plans: Sequence[_Plan], jobs: int, told: Told) -> Iterator[Ran]:
    with _workers(jobs) as workers:
        bench = _Bench(workers, [part for plan in plans for part in plan.parts])
        began = time.monotonic()
        for plan in plans:
            ran = _run(plan, bench, began, told)
            began += ran.seconds
            yield ran


Key = Hashable
"""Of a piece: pieces with equal keys have the same rows."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """An order with everything that it does not say, and its pieces, cell by cell."""

    name: str
    tasks: int
    seed: int
    cells: tuple[str, ...]
    parts: tuple[tuple[Key, Piece], ...]


def _plan(order: Order) -> _Plan:
    wanted = experiment(order.name)
    count, seed = order.tasks or wanted.tasks, wanted.seed if order.seed is None else order.seed
    cells = wanted.cells_of(order.data)
    sizes = {name: min(count, getattr(cell, "size", count)) for name, cell in cells.items()}
    pieces = [
        Piece(order.name, name, first, min(size, first + wanted.piece), seed, order.data)
        for name, size in sizes.items()
        for first in range(0, size, wanted.piece)
    ]
    parts = tuple((_key(cells[piece.cell], piece), piece) for piece in pieces)
    return _Plan(order.name, max(sizes.values()), seed, tuple(cells), parts)


def _key(cell: Cell, piece: Piece) -> Key:
    return (cell.alike, piece.first, piece.last, piece.seed) if isinstance(cell, Alike) else piece


class _Bench:
    """The pieces of all plans: under way, and done ones for as long as somebody still needs them."""

    def __init__(self, workers: Executor | None, parts: Sequence[tuple[Key, Piece]]) -> None:
        self._needed = Counter(key for key, _ in parts)
        self._done: dict[Key, list[object]] = {}
        self._begun: dict[Key, Future[Done]] | None = None
        if workers is not None:
            once = dict(reversed(parts))  # of equal ones the first
            self._begun = {key: workers.submit(_timed, once[key]) for key in dict.fromkeys(key for key, _ in parts)}

    def run(self, key: Key, piece: Piece) -> Done:
        """The rows; they have cost nothing where an earlier piece had the same."""
        spent = 0.0
        if key not in self._done:
            done = _timed(piece) if self._begun is None else self._begun.pop(key).result()
            self._done[key], spent = done.rows, done.processor_seconds
        self._needed[key] -= 1
        return Done(self._done[key] if self._needed[key] else self._done.pop(key), spent)


def _run(plan: _Plan, bench: _Bench, began: float, told: Told) -> Ran:
    rows, spent = {cell: list[object]() for cell in plan.cells}, 0.0
    for number, (key, piece) in enumerate(plan.parts, 1):
        done = bench.run(key, piece)
        rows[piece.cell] += done.rows
        spent += done.processor_seconds
        told(f"{plan.name}: {number} of {len(plan.parts)} pieces, {time.monotonic() - began:.0f} s")
    worked = _worked()
    outcome = experiment(plan.name).judge(rows)
    return Ran(
        name=plan.name,
        tasks=plan.tasks,
        seed=plan.seed,
        seconds=time.monotonic() - began,
        processor_seconds=spent + _worked() - worked,
        outcome=outcome,
    )


def _timed(piece: Piece) -> Done:
    worked = _worked()
    rows = run_piece(piece)
    return Done(rows, _worked() - worked)


def _worked() -> float:
    """Seconds that processors have worked for this process, and for those that it has started and seen end."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@contextmanager
def _workers(jobs: int) -> Generator[Executor | None]:
    if jobs <= 1:
        yield None
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
