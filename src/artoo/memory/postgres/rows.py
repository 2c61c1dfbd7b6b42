"""Megrams and sums as rows. Nothing is rounded on the way: sums travel as exact decimals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

from artoo.contracts.memory import Megram
from artoo.contracts.tags import Pair
from artoo.memory import codec, keys
from artoo.memory.accumulators import Cell, epoch_length_us
from artoo.memory.accumulators import Row as SumsRow
from artoo.memory.exact import ExactSum
from artoo.memory.postgres.database import Row
from artoo.memory.signal import DAY_US, microseconds, moment, signal_of

COLUMNS = (
    *("id", "level", "space", "entity", "born_us", "recalled_us", "state", "derived", "hypothesis"),
    *("f", "sigma", "k", "epoch", "attention", "decision", "task", "intent", "record"),
)
_TYPES = (
    *("text", "text", "bytea", "bytea", "bigint", "bigint", "text", "boolean", "boolean"),
    *("float8", "float8", "float8", "bigint", "numeric", "numeric", "bytea", "bytea", "text"),
)
INSERT = f"""
INSERT INTO memory_megrams ({", ".join(COLUMNS)})
SELECT * FROM unnest({", ".join(f"%s::{name}[]" for name in _TYPES)}) AS given ({", ".join(COLUMNS)})
ORDER BY id
ON CONFLICT (id) DO NOTHING
""".encode()

Values = tuple[object, ...]


def values(megram: Megram) -> Values:
    """A megram in the order of COLUMNS."""
    signal = signal_of(megram)
    epoch, attention, decision = _shares(megram)
    origin = megram.origin
    return (
        megram.id,
        megram.level.value,
        keys.escape(megram.space),
        keys.escape(megram.entity),
        signal.born_us,
        None if megram.last_recalled_at is None else microseconds(megram.last_recalled_at),
        megram.state.value,
        signal.derived,
        origin.hypothesis,
        megram.f,
        megram.sigma,
        megram.k,
        epoch,
        Decimal(attention),
        Decimal(decision),
        keys.escape(origin.task_id) if origin.task_id else None,
        keys.escape(origin.intent) if origin.intent else None,
        codec.encode(megram).decode(),
    )


def columns(rows: Iterable[Values]) -> list[list[object]]:
    """Rows as the arrays that INSERT takes."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in COLUMNS]


def megram(row: Row) -> Megram:
    """The megram of a row with `record` and `recalled_us`. Raises RecordDamaged."""
    found = codec.decode(row["record"].encode())
    recalled = row["recalled_us"]
    return found if recalled is None else found.model_copy(update={"last_recalled_at": moment(recalled)})


def sums(rows: Iterable[Row]) -> SumsRow:
    """The running sums of one pair, from rows of `memory_sums`."""
    cells = {
        (float(row["k"]), int(row["epoch"]), int(row["kind"])): Cell(
            int(row["entries"]), exact(row["attention"]), exact(row["decision"])
        )
        for row in rows
    }
    return SumsRow(dict(sorted(cells.items())))


def exact(number: Decimal) -> ExactSum:
    """A decimal that came from sums of floats, as such a sum."""
    numerator, denominator = number.as_integer_ratio()
    return ExactSum(numerator, 1 - denominator.bit_length())


def pair_keys(pairs: Sequence[Pair]) -> tuple[list[bytes], list[bytes]]:
    """Two arrays: spaces and entities, as keys."""
    return [keys.escape(pair.space) for pair in pairs], [keys.escape(pair.entity) for pair in pairs]


def _shares(megram: Megram) -> tuple[int, float, float]:
    """(epoch, share of the attention, share of the decision), as `accumulators` has it; rules have none."""
    if megram.is_rule:
        return 0, 0.0, 0.0
    epoch, offset = divmod(microseconds(megram.created_at), epoch_length_us(megram.k))
    weight = megram.f * math.exp(megram.k * (offset / DAY_US))
    return epoch, weight, megram.sigma * weight
