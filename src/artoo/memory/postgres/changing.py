"""What changes megrams beside the writer. One statement of a transaction changes sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from artoo.contracts.memory import Megram
from artoo.contracts.tags import Pair
from artoo.memory import keys
from artoo.memory.postgres import rows

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

_REMOVE = b"""
WITH doomed AS (SELECT id FROM memory_megrams WHERE id = ANY(%s) ORDER BY id FOR UPDATE)
DELETE FROM memory_megrams USING doomed WHERE memory_megrams.id = doomed.id RETURNING record, recalled_us
"""
_OF_PAIR = b"SELECT id FROM memory_megrams WHERE space = %s AND entity = %s AND {} LIMIT %s"
_REPLACE = f"""
UPDATE memory_megrams SET ({", ".join(rows.COLUMNS)}) = ({", ".join(["%s"] * len(rows.COLUMNS))})
WHERE id = %s AND space = %s AND entity = %s
""".encode()
_LOCKED = b"SELECT record, recalled_us FROM memory_megrams WHERE id = ANY(%s) ORDER BY id FOR UPDATE"


def locked(connection: Connection, megram_ids: Sequence[str]) -> list[Megram]:
    """The megrams that are there, which nobody else changes until the transaction ends."""
    return [rows.megram(row) for row in connection.execute(_LOCKED, (list(megram_ids),))]


def remove(connection: Connection, megram_ids: Sequence[str]) -> list[Megram]:
    """Deletes megrams; those that were there."""
    return [rows.megram(row) for row in connection.execute(_REMOVE, (list(megram_ids),))]


def ids_of(connection: Connection, pair: Pair, limit: int) -> list[str]:
    """Up to `limit` entries of a pair, rules first."""
    found: list[str] = []
    for rules in (b"level = 'C'", b"level <> 'C'"):  # each has its index
        query = _OF_PAIR.replace(b"{}", rules)
        given = (keys.escape(pair.space), keys.escape(pair.entity), limit - len(found))
        found += [str(row["id"]) for row in connection.execute(query, given)]
    return found


def replace(connection: Connection, megram: Megram) -> bool:
    """Puts a megram in the place of the one with its id and pair; False when that is gone."""
    pair = keys.escape(megram.space), keys.escape(megram.entity)
    return connection.execute(_REPLACE, (*rows.values(megram), megram.id, *pair)).rowcount > 0
