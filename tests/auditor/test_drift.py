"""Role drift: a figure that leaves its own long run is said once; noise and few samples are not."""

from __future__ import annotations

import random

from tapes import Tape

from artoo.auditor.drift import BLOCK, Drift
from artoo.contracts.audit import Finding
from artoo.contracts.events import ModelCalled


def fed(drift: Drift, tape: Tape, durations: list[int], *, failing: float = 0.0) -> list[Finding]:
    """The planner's model calls with these latencies; a share of them fails."""
    base, chance = tape.envelope(ModelCalled), random.Random(7)
    found: list[Finding] = []
    for duration in durations:
        error = "gone" if chance.random() < failing else None
        payload = tape.get(ModelCalled).model_copy(update={"duration_ms": duration, "error": error})
        found += drift.observe(base._replace(payload=payload))
    return found


def noise(count: int, around: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [round(around * chance.uniform(0.6, 1.6)) for _ in range(count)]


def test_noise_is_not_drift(tapes: dict[str, Tape]) -> None:
    """Ten thousand calls with latencies that vary by a factor of almost three, and 5 % failures, say nothing."""
    assert fed(Drift(), tapes["plain"], noise(10_000, 500, 1), failing=0.05) == []


def test_a_slower_model_is_drift_and_is_said_once(tapes: dict[str, Tape]) -> None:
    """Calls that take three times as long are reported at the next full block, not at every one."""
    drift = Drift()
    assert fed(drift, tapes["plain"], noise(600, 500, 2)) == []
    found = fed(drift, tapes["plain"], noise(4 * BLOCK, 1_500, 3))
    assert [each.nature for each in found] == ["drift"]
    assert "latency of a model call" in found[0].what


def test_a_rate_of_failures_that_rises_is_drift(tapes: dict[str, Tape]) -> None:
    """A role whose calls begin to fail often is reported with both rates."""
    drift = Drift()
    assert fed(drift, tapes["plain"], [500] * 600, failing=0.02) == []
    found = fed(drift, tapes["plain"], [500] * (2 * BLOCK), failing=0.6)
    assert any("failed model calls" in each.what for each in found)


def test_few_samples_are_not_judged(tapes: dict[str, Tape]) -> None:
    """Before there is a long run, nothing can leave it."""
    assert fed(Drift(), tapes["plain"], [*[100] * 200, *[5_000] * 60]) == []


def test_the_long_run_survives_storing(tapes: dict[str, Tape]) -> None:
    """What was stored and loaded again judges as before."""
    first, second = Drift(), Drift()
    fed(first, tapes["plain"], noise(600, 500, 4))
    second.load(first.stored())
    assert second.stored() == first.stored()
    assert len(fed(second, tapes["plain"], noise(2 * BLOCK, 2_000, 5))) == 1
