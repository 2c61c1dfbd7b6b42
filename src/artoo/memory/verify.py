"""Check memory's columns and sums against the records, and repair them (`artoo memory verify`).

The records decide what is correct. Columns and sums can be computed from them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from artoo.memory import codec, tables
from artoo.memory.codec import RecordDamaged
from artoo.memory.tables import COLUMNS, Cells
from artoo.memory.views import Findings
from artoo.store.query import Engine, Query, Row, Value

SLICE = 512
_TABLES = "memory_megrams, memory_sums"
_NAMES = ", ".join(COLUMNS)
_EVERY = f"SELECT {_NAMES} FROM memory_megrams WHERE id > ? ORDER BY id LIMIT ?"
_OF_PAIR = """
SELECT level, space, entity, born_us, derived, sigma, k, epoch, attention, decision FROM memory_megrams
WHERE space = ? AND entity = ? AND level <> 'C'
"""
_SUMS = (
    "SELECT k, epoch, kind, entries, latest_us, attention, decision FROM memory_sums WHERE space = ? AND entity = ?"
)
_CLEAR = "DELETE FROM memory_sums WHERE space = ? AND entity = ?"
_UPDATE = f"UPDATE memory_megrams SET {', '.join(f'{name} = ?' for name in COLUMNS[1:])} WHERE id = ?"
_ASIDE = """
INSERT INTO memory_damaged (id, record, found_us) SELECT id, record, now_us() FROM memory_megrams WHERE id = ?
ON CONFLICT (id) DO NOTHING
"""
_PAIRS = """
SELECT space, entity FROM (
    SELECT DISTINCT space, entity FROM memory_megrams WHERE level <> 'C' AND (space, entity) > (?, ?)
    ORDER BY space, entity LIMIT ?
) AS m
UNION SELECT space, entity FROM (
    SELECT DISTINCT space, entity FROM memory_sums WHERE (space, entity) > (?, ?) ORDER BY space, entity LIMIT ?
) AS s
ORDER BY 1, 2 LIMIT ?
"""
_TOGETHER = 16
"""Number of pairs whose sums are checked in one transaction."""
_NEAR = 1e-9
_SHARES = ("attention", "decision")
_PairKey = tuple[bytes, bytes]


def examine(query: Query) -> Findings:
    """Compute derived columns and totals from the records again. Compare them with the stored ones.

    Everything is read from one snapshot. Nothing is changed.
    """
    findings = Findings()
    for problem in query.problems():
        findings.missing_index += 1
        findings.note(f"the file: {problem}")
    for row in _every(query):
        findings.records += 1
        try:
            wrong = _wrong(row)
        except RecordDamaged as error:
            findings.unreadable += 1
            findings.note(f"record {row['id']}: {error}")
            continue
        if wrong:
            findings.missing_index += 1
            findings.note(f"record {row['id']}: {', '.join(wrong)} do not match it")
    for pairs in _slices(query):
        for pair in pairs:
            findings.pairs += 1
            if not _agree(query, pair):
                findings.wrong_sums += 1
                findings.note(f"sums of {pair[0][:40]!r} {pair[1][:40]!r} do not match its records")
    return findings


def repair(engine: Engine) -> None:
    """Move records that cannot be read to a table of damaged records. Compute columns and sums from the other
    records again.

    Other processes may write at the same time, because this is done in slices.
    """
    after: str | None = ""
    while after is not None:
        after = engine.write(lambda query, start=after: _mend_rows(query, start))
    pair: _PairKey | None = (b"", b"")
    while pair is not None:
        pair = engine.write(lambda query, start=pair: _mend_sums(query, start))


def _every(query: Query, after: str = "") -> Iterator[Row]:
    while rows := query.all(_EVERY, (after, SLICE)):
        yield from rows
        after = rows[-1]["id"]


def _slices(query: Query) -> Iterator[list[_PairKey]]:
    after: _PairKey = (b"", b"")
    while pairs := _pairs(query, after):
        yield pairs
        after = pairs[-1]


def _pairs(query: Query, after: _PairKey) -> list[_PairKey]:
    rows = query.all(_PAIRS, (*after, _TOGETHER, *after, _TOGETHER, _TOGETHER))
    return [(bytes(row["space"]), bytes(row["entity"])) for row in rows]


def _mend_rows(query: Query, after: str) -> str | None:
    rows = query.all(_EVERY, (after, SLICE))
    for row in rows:
        try:
            wrong = _wrong(row)
        except RecordDamaged:
            query.run(_ASIDE, (row["id"],))
            query.run("DELETE FROM memory_megrams WHERE id = ?", (row["id"],))
            continue
        if wrong:
            right = _right(row)
            query.run(_UPDATE, (*(right[name] for name in COLUMNS[1:]), row["id"]))
    return rows[-1]["id"] if len(rows) == SLICE else None


def _mend_sums(query: Query, after: _PairKey) -> _PairKey | None:
    # Without a lock, a write between computing a sum and storing it would be lost.
    query.keep_out(_TABLES)
    pairs = _pairs(query, after)
    for pair in pairs:
        if not _agree(query, pair):
            query.run(_CLEAR, pair)
            _due(query, pair).write(query)
    return pairs[-1] if pairs else None


def _agree(query: Query, pair: _PairKey) -> bool:
    """Return whether the sums of a pair are the totals of its entries."""
    due = {
        key[2:]: (cell.entries, str(cell.attention), str(cell.decision), cell.latest_us)
        for key, cell in _due(query, pair).found.items()
    }
    kept = {
        (float(row["k"]), row["epoch"], row["kind"]): (
            *(int(row["entries"]), str(row["attention"]), str(row["decision"])),
            row["latest_us"],
        )
        for row in query.all(_SUMS, pair)
    }
    return due.keys() == kept.keys() and all(
        kept[key][:3] == wanted[:3] and kept[key][3] >= wanted[3] for key, wanted in due.items()
    )


def _due(query: Query, pair: _PairKey) -> Cells:
    cells = Cells()
    for row in query.all(_OF_PAIR, pair):
        cells.count(row)
    return cells


def _wrong(row: Row) -> list[str]:
    """Return the columns in which a row does not match its record. Raises RecordDamaged."""
    right = _right(row)
    return [name for name in COLUMNS if row[name] != right[name]]


def _right(row: Row) -> dict[str, Value]:
    """Return the correct row for a record. If a stored contribution differs only slightly, it is kept, because exp
    on another machine may differ in the last digit."""
    right = tables.values(codec.decode(row["record"])) | {"record": row["record"]}
    return right | {name: row[name] for name in _SHARES if _near(row[name], right[name])}


def _near(kept: object, due: Value) -> bool:
    try:
        return math.isclose(int(str(kept)), int(str(due)), rel_tol=_NEAR, abs_tol=1.0)
    except ValueError:
        return False
