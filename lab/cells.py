"""Define cells that run jobs which are independent of one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from lab.experiment import Rows
from lab.laws import Arm
from lab.running import Trace, run_job
from lab.statistics import Estimate, Frontier, difference, mean
from lab.world import CALM, FAULTY, World, job_of

WORLDS: Mapping[str, World] = {"calm": CALM, "faulty": FAULTY}


@dataclass(frozen=True, slots=True)
class Jobs:
    """The implementation of `experiment.Cell` for an arm in a world. `parts` fixes how many parts each job has."""

    world: World
    arm: Arm
    parts: int | None = None

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return a Trace for each job."""
        return [
            await run_job(self.world, job_of(self.world, seed, number, parts=self.parts), self.arm, seed)
            for number in numbers
        ]


def named(world: str, arm: str) -> str:
    """Return the name of a cell."""
    return f"{world}: {arm}"


def in_both_worlds(arms: Sequence[Arm]) -> dict[str, Jobs]:
    """Return a cell for each arm in each world."""
    return {named(world, arm.name): Jobs(WORLDS[world], arm) for world in WORLDS for arm in arms}


def traces(rows: Rows, cell: str) -> list[Trace]:
    """Return the rows of a cell of jobs."""
    return cast("list[Trace]", list(rows[cell]))


def solved(found: Sequence[Trace]) -> list[float]:
    """Return 1 for each job that was solved, else 0."""
    return [float(each.solved) for each in found]


def calls(found: Sequence[Trace]) -> list[float]:
    """Return the model calls of each job."""
    return [float(each.calls) for each in found]


@dataclass(frozen=True, slots=True)
class Paired:
    """The difference of a variant from its reference in jobs solved and calls, job by job."""

    solved: Estimate
    calls: Estimate

    @property
    def moves(self) -> bool:
        """True if one of the two is clear of 0."""
        return any(each.above or each.below for each in (self.solved, self.calls))

    def said(self, name: str) -> str:
        """Return the difference in one line."""
        return f"{name}: {self.solved.text(1, 100)} points, {self.calls.text(1)} calls"

    def cells(self, name: str) -> tuple[str, str, str]:
        """Return a row of a table."""
        return name, self.solved.text(1, 100), self.calls.text(2)


def paired(rows: Rows, variant: str, against: str) -> Paired:
    """Return the rows of one cell less those of another."""
    law, other = traces(rows, against), traces(rows, variant)
    return Paired(difference(solved(other), solved(law)), difference(calls(other), calls(law)))


def base(rows: Rows, cell: str) -> str:
    """Return what a cell solves and calls, in one sentence."""
    found = traces(rows, cell)
    everybody = range(len(found))
    return f"{100 * mean(solved(found), everybody):.1f} % at {mean(calls(found), everybody):.1f} calls a job"


def frontier(found: Sequence[Trace], most: int) -> Frontier:
    """Return what an arm without its own stopping rule reached after each round, up to `most` replans."""
    at = [[each.rounds[min(number, len(each.rounds) - 1)] for each in found] for number in range(most + 1)]
    return Frontier(
        calls=tuple(tuple(float(progress.calls) for progress in row) for row in at),
        solved=tuple(
            tuple(float(progress.met == each.criteria) for progress, each in zip(row, found, strict=True))
            for row in at
        ),
    )
