"""What the sums need of a megram, packed: the value of its index entry."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from artoo.contracts.memory import Level, Megram, MegramState
from artoo.memory.codec import RecordDamaged

_PACKED = struct.Struct("<cBqddd")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_US = 86_400_000_000

_DERIVED = 1
_DERIVED_STATES = frozenset({MegramState.CONSOLIDATED, MegramState.DISSONANCE})


class Signal(NamedTuple):
    """A megram's signal: magnitude |f|, valence σ, decay k per day, birth in microseconds since 1970 UTC.

    `derived` marks what memory concluded by itself (hypotheses, former rules, dissonance): part of the sums, never
    evidence for a promotion.
    """

    level: str
    born_us: int
    f: float
    sigma: float
    k: float
    derived: bool

    @property
    def counts(self) -> bool:
        """True for M and K: rules are not evidence."""
        return self.level in ("M", "K")


def signal_of(megram: Megram) -> Signal:
    """The signal of a megram."""
    level = megram.level
    derived = level is Level.COMMON_SENSE or megram.state in _DERIVED_STATES or megram.origin.hypothesis
    return Signal(level, microseconds(megram.created_at), megram.f, megram.sigma, megram.k, derived)


def pack(signal: Signal) -> bytes:
    """34 bytes, little-endian."""
    flags = _DERIVED if signal.derived else 0
    return _PACKED.pack(signal.level.encode(), flags, signal.born_us, signal.f, signal.sigma, signal.k)


def unpack(raw: bytes) -> Signal:
    """The inverse of `pack`. Raises RecordDamaged when the bytes are not a signal."""
    try:
        level, flags, born_us, f, sigma, k = _PACKED.unpack(raw)
    except struct.error as error:
        raise RecordDamaged("An index entry cannot be read. Run `artoo memory verify`.") from error
    return Signal(level.decode("ascii", "replace"), born_us, f, sigma, k, bool(flags & _DERIVED))


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970 UTC, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    """The inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=us)
