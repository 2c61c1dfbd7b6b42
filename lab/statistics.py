"""Compute means with intervals: the percentile bootstrap (Efron 1979) over jobs, paired between arms."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

RESAMPLES = 400
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def above(self) -> bool:
        """True if all of the interval is above zero."""
        return self.low > 0

    @property
    def below(self) -> bool:
        """True if all of the interval is below zero."""
        return self.high < 0

    def text(self, digits: int = 2, scale: float = 1.0) -> str:
        """Return `value [low, high]`, each multiplied by `scale`."""
        value, low, high = (f"{each * scale:.{digits}f}" for each in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"


def bootstrap(count: int, statistic: Callable[[Sequence[int]], float], seed: int = 0) -> Estimate:
    """Return a statistic of `count` jobs, given as their positions, with its interval.

    Raises ValueError when there are no jobs.
    """
    if count < 1:
        raise ValueError("an interval needs at least one job")
    found, everybody = sorted(map(statistic, _resamples(count, seed))), range(count)
    tail = round((1 - LEVEL) / 2 * (RESAMPLES - 1))
    return Estimate(statistic(everybody), found[tail], found[-1 - tail])


@lru_cache(maxsize=4)
def _resamples(count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return the resamples of every interval of as many jobs: drawing them costs more than the means over them."""
    chance, everybody = random.Random(seed), tuple(range(count))
    return tuple(tuple(chance.choices(everybody, k=count)) for _ in range(RESAMPLES))


def mean(values: Sequence[float], at: Sequence[int]) -> float:
    """Return the mean of the values at these positions."""
    return sum(map(values.__getitem__, at)) / len(at)


def mean_of(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean with its interval."""
    return bootstrap(len(values), lambda at: mean(values, at), seed)


def difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean of ours − theirs, job by job. Raises ValueError when they are not the same jobs."""
    return mean_of([a - b for a, b in zip(ours, theirs, strict=True)], seed)


@dataclass(frozen=True, slots=True)
class Frontier:
    """The reach of an arm with 0, 1, 2 … replans: for each number, every job's calls and whether it is solved.

    A job that ended earlier stays as it ended.
    """

    calls: tuple[tuple[float, ...], ...]
    solved: tuple[tuple[float, ...], ...]

    def points(self, at: Sequence[int]) -> list[tuple[float, float]]:
        """Return (mean calls, share solved) for each number of replans, for these jobs."""
        return [(mean(c, at), mean(s, at)) for c, s in zip(self.calls, self.solved, strict=True)]


def solved_at(points: Sequence[tuple[float, float]], calls: float) -> float:
    """Return the share solved for this many calls.

    Between two points by a straight line (a mixture of both), from nothing at no calls; beyond the last point
    nothing is gained.
    """
    before = (0.0, 0.0)
    for point in points:
        if point[0] >= calls:
            width = point[0] - before[0]
            return before[1] + (point[1] - before[1]) * ((calls - before[0]) / width if width else 1.0)
        before = point
    return before[1]
