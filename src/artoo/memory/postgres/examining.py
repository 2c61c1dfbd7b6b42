"""Does the store agree with itself? The records are the truth; columns and sums can be rebuilt from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from artoo.memory.codec import RecordDamaged
from artoo.memory.postgres import rows
from artoo.memory.postgres.database import Row
from artoo.ports.memory_books import Findings
from artoo.store.pooled import without_limits

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

SLICE = 2_048
_SLICE = f"SELECT {', '.join(rows.COLUMNS)} FROM memory_megrams WHERE id > %s ORDER BY id LIMIT %s".encode()
_RIGHT = b"""
SELECT space, entity, k, epoch, kind, count(*) AS entries, sum(attention) AS attention, sum(decision) AS decision
FROM memory_megrams WHERE level <> 'C' GROUP BY space, entity, k, epoch, kind
"""
_WRONG = b"""
SELECT coalesce(kept.space, due.space) AS space, coalesce(kept.entity, due.entity) AS entity,
    coalesce(kept.k, due.k) AS k, coalesce(kept.epoch, due.epoch) AS epoch, coalesce(kept.kind, due.kind) AS kind
FROM memory_sums AS kept FULL JOIN (%s) AS due USING (space, entity, k, epoch, kind)
WHERE (kept.entries, kept.attention, kept.decision) IS DISTINCT FROM (due.entries, due.attention, due.decision)
""".replace(b"%s", _RIGHT)
_UPDATE = f"""
UPDATE memory_megrams SET ({", ".join(rows.COLUMNS)}) = ({", ".join(["%s"] * len(rows.COLUMNS))}) WHERE id = %s
""".encode()
_ASIDE = b"""
WITH gone AS (DELETE FROM memory_megrams WHERE id = %s RETURNING id, record)
INSERT INTO memory_damaged (id, record, found_us) SELECT id, record, now_us() FROM gone ON CONFLICT (id) DO NOTHING
"""
_SHARES = ("attention", "decision")
_NEAR = 1e-9


def examine(connection: Connection) -> Findings:
    """Compares every row with its record, and the sums with what the rows add up to."""
    findings = Findings()
    for row in _every(connection):
        findings.records += 1
        try:
            right = _right(row)
        except RecordDamaged as error:
            findings.unreadable += 1
            findings.note(f"record {row['id']}: {error}")
            continue
        if wrong := [name for name in rows.COLUMNS if row[name] != right[name]]:
            findings.missing_index += 1
            findings.note(f"record {row['id']}: {', '.join(wrong)} do not match it")
    pairs = b"SELECT count(*) AS pairs FROM (SELECT DISTINCT space, entity FROM memory_megrams) AS listed"
    (findings.pairs,) = (int(row["pairs"]) for row in connection.execute(pairs))
    for row in connection.execute(_WRONG):
        findings.wrong_sums += 1
        findings.note(
            f"sums of {bytes(row['space'])[:40]!r} {bytes(row['entity'])[:40]!r} do not match its records"
        )
    return findings


def repair(connection: Connection) -> None:
    """Makes rows and sums follow the records. Writers wait until it is done, or keep theirs on disk."""
    with without_limits(connection):
        connection.execute(b"LOCK TABLE memory_megrams, memory_sums IN SHARE ROW EXCLUSIVE MODE")
        _repair_rows(connection)
        connection.execute(
            b"DELETE FROM memory_sums AS kept USING ("
            + _WRONG
            + b""") AS wrong
            WHERE kept.space = wrong.space AND kept.entity = wrong.entity AND kept.k = wrong.k
                AND kept.epoch = wrong.epoch AND kept.kind = wrong.kind"""
        )
        connection.execute(
            b"INSERT INTO memory_sums (space, entity, k, epoch, kind, entries, attention, decision)"
            + _RIGHT
            + b"ON CONFLICT (space, entity, k, epoch, kind) DO NOTHING"
        )


def _repair_rows(connection: Connection) -> None:
    for row in _every(connection):
        try:
            right = _right(row)
        except RecordDamaged:
            connection.execute(_ASIDE, (row["id"],))
            continue
        if any(row[name] != right[name] for name in rows.COLUMNS):
            connection.execute(_UPDATE, (*right.values(), row["id"]))


def _every(connection: Connection) -> Iterator[Row]:
    after = ""
    while found := connection.execute(_SLICE, (after, SLICE)).fetchall():
        yield from found
        after = str(found[-1]["id"])


def _right(row: Row) -> Row:
    """The row that its record asks for. Its own shares are kept while they are near: see the table's comment."""
    right = dict(zip(rows.COLUMNS, rows.values(rows.megram(row)), strict=True))
    if all(_near(row[name], right[name]) for name in _SHARES):
        right |= {name: row[name] for name in _SHARES}
    return right


def _near(kept: Decimal, due: object) -> bool:
    return math.isclose(float(kept), float(str(due)), rel_tol=_NEAR, abs_tol=1e-300)
