"""The signal of a megram (magnitude, valence, decay), and the recomputation of sums by definition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from artoo.contracts.memory import Level, Megram, MegramState
from artoo.control.potentials import Sums, retention

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_US = 86_400_000_000

_DERIVED_STATES = frozenset({MegramState.CONSOLIDATED, MegramState.DISSONANCE})


class Signal(NamedTuple):
    """The signal of a megram. It has the magnitude |f|, the valence σ, the decay k per day, and the time of
    creation in microseconds since 1970 UTC.

    `counts`: true for entries of the levels M and K. Rules are no evidence. `derived`: true for entries that memory
    has derived by itself (hypotheses, former rules, dissonance). They are added to the sums, but are never evidence
    for a promotion.
    """

    counts: bool
    born_us: int
    f: float
    sigma: float
    k: float
    derived: bool


def signal_of(megram: Megram) -> Signal:
    """Return the signal of a megram."""
    rule = megram.level is Level.COMMON_SENSE
    derived = rule or megram.state in _DERIVED_STATES or megram.origin.hypothesis
    return Signal(not rule, microseconds(megram.created_at), megram.f, megram.sigma, megram.k, derived)


def microseconds(moment: datetime) -> int:
    """Convert a time to whole microseconds since 1970 UTC, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    """Convert microseconds since 1970 UTC to a time."""
    return _EPOCH + timedelta(microseconds=us)


def recomputed(signals: Iterable[Signal], now_us: int) -> Sums:
    """Compute the sums from their definition, entry by entry. The time is O(n)."""
    # with fsum, the result does not depend on the order of the entries
    shares: list[tuple[float, float]] = []
    for signal in signals:
        if signal.counts:
            left = retention(signal.k, (now_us - signal.born_us) / DAY_US)
            shares.append((abs(signal.f) * left, signal.sigma))
    return Sums(
        math.fsum(share for share, _ in shares),
        math.fsum(share * sigma for share, sigma in shares),
        math.fsum(share for share, sigma in shares if sigma),
    )
