"""Running sums per (space, entity, k): both potentials in constant time, exactly.

exp(−k·(now − t)) = exp(−k·(now − epoch)) · exp(k·(t − epoch)), so all entries of one k share the first factor
and only the second has to be summed. Over years the second overflows, so time is cut into epochs of 64/k days
(3.5 years for k = .05) and each has its own sum, whose terms lie between |f| and |f|·e^64. Where an entry
falls depends on nothing but its own birth and k, and the sums are exact (`exact.py`): a row is a pure function
of the set of its entries, whatever the order of writes, deletes, promotions and clock jumps.

An entry from the future counts as new (`potentials.retention`). The shared factor cannot express that, so a
row also knows its latest birth; while that lies ahead of the clock the caller sums the pair entry by entry.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from functools import lru_cache

from artoo.control.potentials import Sums, retention
from artoo.memory.codec import RecordDamaged
from artoo.memory.exact import ExactSum
from artoo.memory.signal import DAY_US, Signal

EPOCH_EXPONENT = 64
_HEAD = struct.Struct("<q")
_CELL = struct.Struct("<dqBQhHhH")
_FOREVER_US = 1 << 62


class Cell:
    """The sums of one k and one epoch: entries, Σ|f|·exp(k·(t − epoch)), Σσf·exp(k·(t − epoch))."""

    __slots__ = ("attention", "decision", "entries")

    def __init__(
        self, entries: int = 0, attention: ExactSum | None = None, decision: ExactSum | None = None
    ) -> None:
        self.entries = entries
        self.attention = attention if attention is not None else ExactSum()
        self.decision = decision if decision is not None else ExactSum()

    def value(self) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """What equal cells have in common."""
        return self.entries, self.attention.reduced(), self.decision.reduced()


_DERIVED = 1
_NEUTRAL = 2

CellKey = tuple[float, int, int]
"""(k, epoch, kind). Derived entries are summed apart, because no promotion may rest on them, and so are those
without a valence, because no advice may."""


class Row:
    """The running sums of one pair. `latest_us`: an upper bound on the births of its entries."""

    __slots__ = ("cells", "latest_us")

    def __init__(self, cells: dict[CellKey, Cell] | None = None, latest_us: int = -_FOREVER_US) -> None:
        self.cells = cells if cells is not None else {}
        self.latest_us = latest_us

    @property
    def count(self) -> int:
        """How many entries the row stands for."""
        return sum(cell.entries for cell in self.cells.values())

    def add(self, signal: Signal) -> None:
        """Counts an entry in. Rules (C) change nothing."""
        if signal.counts:
            self._shift(signal, 1.0)
            self.latest_us = max(self.latest_us, signal.born_us)

    def remove(self, signal: Signal) -> None:
        """Counts an entry out: exactly the inverse of `add`."""
        if signal.counts:
            self._shift(signal, -1.0)

    def ahead_of(self, now_us: int) -> bool:
        """True when some entry may be younger than `now_us`."""
        return self.latest_us > now_us

    def at(self, now_us: int, *, direct: bool = False) -> Sums:
        """The sums at a time that no entry is ahead of; `direct` leaves derived entries out."""
        attention = decision = judged = 0.0
        for (k, epoch, kind), cell in self.cells.items():
            if direct and kind & _DERIVED:
                continue
            # Two half steps: one could underflow although the product does not.
            half = math.exp(-k * ((now_us - epoch * epoch_length_us(k)) / DAY_US) / 2)
            share = cell.attention.scaled(half) * half
            attention += share
            judged += 0.0 if kind & _NEUTRAL else share
            decision += cell.decision.scaled(half) * half
        return Sums(attention, decision, judged)

    def agrees_with(self, other: Row) -> bool:
        """True when both stand for the same entries."""
        mine = {key: cell.value() for key, cell in self.cells.items()}
        return mine == {key: cell.value() for key, cell in other.cells.items()}

    def _shift(self, signal: Signal, sign: float) -> None:
        _, born_us, f, sigma, k, derived = signal
        epoch, offset = divmod(born_us, epoch_length_us(k))
        weight = sign * f * math.exp(k * (offset / DAY_US))
        key = (k, epoch, (_DERIVED if derived else 0) | (0 if sigma else _NEUTRAL))
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell()
        cell.entries += 1 if sign > 0 else -1
        if cell.entries == 0:
            del self.cells[key]
            return
        numerator, denominator = weight.as_integer_ratio()
        halvings = denominator.bit_length() - 1
        cell.attention.add_ratio(numerator, halvings)
        if abs(sigma) == 1.0:  # nearly always: then the float is taken apart once for both sums
            cell.decision.add_ratio(numerator if sigma > 0 else -numerator, halvings)
        else:
            cell.decision.add(sigma * weight)


@lru_cache(maxsize=1_024)
def epoch_length_us(k: float) -> int:
    """The length of an epoch for a decay of k per day, in whole microseconds."""
    return max(1, min(_FOREVER_US, int(EPOCH_EXPONENT / k * DAY_US))) if k > 1e-9 else _FOREVER_US


def encode(row: Row) -> bytes:
    """A row as bytes, cells in order."""
    parts = [_HEAD.pack(row.latest_us)]
    for key in sorted(row.cells):
        cell = row.cells[key]
        attention, decision = cell.attention.compact(), cell.decision.compact()
        raw_a, raw_d = _signed_bytes(attention.mantissa), _signed_bytes(decision.mantissa)
        lengths = (attention.exponent, len(raw_a), decision.exponent, len(raw_d))
        parts += (_CELL.pack(*key, cell.entries, *lengths), raw_a, raw_d)
    return b"".join(parts)


def decode(raw: bytes) -> Row:
    """The inverse of `encode`. Raises RecordDamaged when the bytes are not a row."""
    try:
        return _decode(raw)
    except struct.error as error:
        raise RecordDamaged("The running sums of a pair cannot be read. Run `artoo memory verify`.") from error


def _decode(raw: bytes) -> Row:
    (latest_us,) = _HEAD.unpack_from(raw)
    cells: dict[CellKey, Cell] = {}
    at, end = _HEAD.size, len(raw)
    from_bytes = int.from_bytes
    while at < end:
        k, epoch, kind, count, exponent_a, length_a, exponent_d, length_d = _CELL.unpack_from(raw, at)
        at += _CELL.size
        middle = at + length_a
        attention = ExactSum(from_bytes(raw[at:middle], "little", signed=True), exponent_a)
        at = middle + length_d
        decision = ExactSum(from_bytes(raw[middle:at], "little", signed=True), exponent_d)
        cells[(k, epoch, kind)] = Cell(count, attention, decision)
    return Row(cells, latest_us)


def recomputed(signals: Iterable[Signal], now_us: int) -> Sums:
    """The sums entry by entry, as the definition has it; O(n)."""
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


def _signed_bytes(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
