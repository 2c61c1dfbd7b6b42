"""Detect role drift, with sigmas, block sizes and least effects, if a role's figures leave their long-term band.

Reference: paper, section 8.

Each figure (such as a rate, a number of corrections, or the logarithm of a latency) has a running mean and variance
over about its last `MEMORY` samples. New samples are collected in blocks of `BLOCK`. When a block is full, it is
reported as drift if its mean differs from the long-run mean by at least `SIGMAS` standard errors and by at least
the figure's least effect. Drift is reported only once until a block is within the band again. A block within the
band is added to the long run. No block is judged before there are `ENOUGH` samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import SubTaskOutcome, ToolCalled
from artoo.contracts.plan import Plan, PlanRefused
from artoo.contracts.solution import Directive, FinalResult

BLOCK = 30
ENOUGH = 300
MEMORY = 2_000
SIGMAS = 4.5
MOST_FIGURES = 256

_RATE, _COUNT, _LATENCY = 0.15, 0.3, math.log(1.5)
"""The least effects that are reported: 15 percentage points, 0.3 corrections, or a latency that is 1.5 times as
long."""

_LEAST_DEVIATION = {_RATE: 0.05, _COUNT: 0.1, _LATENCY: 0.1}

Sample = tuple[str, float, float]
"""The name of a figure (`role/measure`), its value, and its least effect."""


@dataclass(slots=True)
class Band:
    """The long-run statistics of one figure, which are its effective number of samples, mean and variance."""

    count: float = 0.0
    mean: float = 0.0
    variance: float = 0.0

    def merged(self, block: Sequence[float]) -> Band:
        """Return the long-run statistics with a block of new samples added. If there are more than `MEMORY`
        samples, old samples lose weight."""
        added, old = len(block), min(self.count, MEMORY - len(block))
        mean = sum(block) / added
        spread = sum((value - mean) ** 2 for value in block)
        total, apart = old + added, mean - self.mean
        variance = (self.variance * old + spread + apart * apart * old * added / total) / total
        return Band(total, self.mean + apart * added / total, variance)

    def distance(self, mean: float, samples: int, least: float) -> float:
        """Return how far the mean of a block is from the long-run mean, in standard errors and with a sign."""
        deviation = max(math.sqrt(self.variance), _LEAST_DEVIATION[least])
        return (mean - self.mean) / (deviation * math.sqrt(1 / samples + 1 / self.count))


@dataclass(slots=True)
class Drift:
    """The figures of all roles. `blocks` are full blocks that are not stored yet."""

    bands: dict[str, Band] = field(default_factory=dict[str, Band])
    blocks: list[tuple[str, tuple[float, ...]]] = field(default_factory=list[tuple[str, tuple[float, ...]]])
    _gathering: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    _outside: set[str] = field(default_factory=set[str])

    def observe(self, envelope: Envelope) -> Sequence[Finding]:
        """Add the figures in one message. Return findings about the figures that have drifted."""
        samples = _samples(envelope)
        if not samples:
            return ()
        return [found for sample in samples if (found := self._add(sample, envelope)) is not None]

    def load(self, bands: Mapping[str, Sequence[float]]) -> None:
        """Replace the long-run statistics by stored values, which are (count, mean, variance) by figure."""
        self.bands = {name: Band(*values) for name, values in bands.items() if len(values) == 3}

    def stored(self) -> dict[str, tuple[float, float, float]]:
        """Return the values that are to be stored. This is the inverse of `load`."""
        return {name: (band.count, band.mean, band.variance) for name, band in self.bands.items()}

    def _add(self, sample: Sample, envelope: Envelope) -> Finding | None:
        name, value, least = sample
        if name not in self._gathering and len(self._gathering) >= MOST_FIGURES:
            return None
        block = self._gathering.setdefault(name, [])
        block.append(value)
        if len(block) < BLOCK:
            return None
        full = tuple(block)
        block.clear()
        found = self._judge(name, full, least, envelope)
        self.bands[name] = self.bands.get(name, Band()).merged(full)
        if len(self.blocks) < MOST_FIGURES:
            self.blocks.append((name, full))
        return found

    def _judge(self, name: str, block: Sequence[float], least: float, envelope: Envelope) -> Finding | None:
        band = self.bands.get(name)
        if band is None or band.count < ENOUGH:
            return None
        mean = sum(block) / len(block)
        distance = band.distance(mean, len(block), least)
        # Both conditions are needed. If there are many samples, even tiny differences are significant. If there are
        # few samples, even large differences are uncertain.
        if abs(distance) < SIGMAS or abs(mean - band.mean) < least:
            self._outside.discard(name)
            return None
        if name in self._outside:
            return None
        self._outside.add(name)
        role, _, measure = name.partition("/")
        before, now = _shown(band.mean, least), _shown(mean, least)
        what = (
            f"{role}: {measure} {before} in the long run ({band.count:.0f} samples), {now} in the last {len(block)}"
        )
        return Finding(rule="role_drift", nature="drift", what=f"{what} ({distance:+.1f} σ)", at=envelope.at)


def _shown(value: float, least: float) -> str:
    if least == _LATENCY:
        return f"{math.expm1(value):.0f} ms"
    return f"{value:.0%}" if least == _RATE else f"{value:.2f}"


def _samples(envelope: Envelope) -> Sequence[Sample]:
    match envelope.payload:
        case ToolCalled(call=call):
            failed = call.status.failed
            return [(f"executor/{call.tool} failures", float(failed), _RATE)]
        case ModelCalled() as called:
            return list(_of_call(called))
        case SubTaskOutcome() as outcome:
            return [
                ("agent_validator/refused subtasks", float(outcome.status == "failed"), _RATE),
                ("executor/corrections a subtask", float(outcome.corrections), _COUNT),
            ]
        case Plan() | PlanRefused():
            return [("planner/refused plans", float(isinstance(envelope.payload, PlanRefused)), _RATE)]
        case FinalResult() as result:
            return [("solver/abandoned tasks", float(result.directive is Directive.ABANDON), _RATE)]
        case _:
            return ()


def _of_call(called: ModelCalled) -> Iterable[Sample]:
    role = called.role.value
    yield f"{role}/failed model calls", float(called.error is not None), _RATE
    yield f"{role}/repaired answers", float(called.repaired), _RATE
    if called.error is None:
        yield f"{role}/latency of a model call", math.log1p(max(0, called.duration_ms)), _LATENCY
