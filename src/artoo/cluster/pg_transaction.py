"""One transaction of the database on PostgreSQL: what it says otherwise than SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from artoo.agents.storage.transaction import Hold, Parameters
from artoo.cluster.pg_listen import CHANNEL
from artoo.store.dialect import for_psycopg

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

NUMBERS = 1_000
"""How many numbers a transaction counts on from the one that it took."""

_SHARDS = 16

LEAVE = b"""
WITH forgotten AS (DELETE FROM receipts WHERE token = ANY(%s))
INSERT INTO receipts (token) SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL
"""
"""A transaction that has changed nothing leaves none: it may be done again."""

_ARRIVED = (
    b"INSERT INTO arrivals (name, shard, count) VALUES (%s, pg_backend_pid() %% " + str(_SHARDS).encode() + b", 1)"
    b" ON CONFLICT (name, shard) DO UPDATE SET count = arrivals.count + 1"
)
_HOLDING = {"wait": " FOR UPDATE", "skip": " FOR UPDATE SKIP LOCKED"}


class SharedEngine:
    """Implements `transaction.Engine`."""

    def __init__(self, connection: psycopg.Connection[DictRow], store: str, holder: str) -> None:
        self._connection = connection
        self._holder = holder
        self._next = 0
        self._end = 0
        self._arrived: set[str] = set()
        self._waiting: list[tuple[bytes, Any]] = []
        self._store = store

    def all(self, sql: str, parameters: Parameters = ()) -> list[DictRow]:
        """See Engine."""
        return self._execute(sql, parameters).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """See Engine."""
        return self._execute(sql, parameters).rowcount

    def _execute(self, sql: str, parameters: Parameters) -> psycopg.Cursor[DictRow]:
        self._send()
        return self._connection.execute(for_psycopg(sql), parameters or None)

    def store(self) -> str:
        """See Engine."""
        return self._store

    def put(self, sql: str, parameters: Parameters) -> None:
        """See Engine. They are sent together, so that one answer is waited for, and not one each."""
        self._waiting.append((for_psycopg(sql), parameters))

    def holding(self, sql: str, hold: Hold) -> str:
        """See Engine."""
        return sql + _HOLDING[hold]

    def next_number(self) -> int:
        """See Engine. Taken at the first call, when the rows that it is about are held."""
        if self._next == self._end:
            self._send()
            row = self._connection.execute(b"SELECT nextval('numbers') AS number").fetchone()
            assert row is not None
            self._next = int(row["number"]) * NUMBERS
            self._end = self._next + NUMBERS
        self._next += 1
        return self._next - 1

    def arrived(self, name: str) -> None:
        """See Engine. Written at the end, in the order of the names: no process waits for these rows for long."""
        self._arrived.add(name)

    def alone(self, what: str) -> None:
        """See Engine."""
        self._send()
        self._connection.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"artoo {what}",))

    def commit(self, token: UUID, forgotten: Sequence[UUID]) -> str | None:
        """Sends what is left, leaves a receipt and ends the transaction; what the server calls its end."""
        self._waiting += [(_ARRIVED, (name,)) for name in sorted(self._arrived)]
        return self._send((LEAVE, (list(forgotten), token)), (b"COMMIT", ()))

    def _send(self, *more: tuple[bytes, Any]) -> str | None:
        """Sends what waits, in its order, and then `more`; the server's word on the last."""
        waiting, self._waiting = [*self._waiting, *more], []
        if not waiting:
            return None
        if len(waiting) == 1:
            return self._connection.execute(waiting[0][0], waiting[0][1] or None).statusmessage
        with self._connection.pipeline():
            cursors = [self._connection.execute(sql, parameters or None) for sql, parameters in waiting]
        return cursors[-1].statusmessage

    def notify(self) -> None:
        """Wakes who listens, after the commit: within them, PostgreSQL lets one notifying commit pass at a time."""
        if self._arrived:
            self._connection.execute(b"SELECT pg_notify(%s, %s)", (CHANNEL, self._holder))
