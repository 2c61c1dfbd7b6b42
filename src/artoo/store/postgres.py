"""The query layer on a PostgreSQL store that several machines share.

Transactions run on connections of a pool. They run beside each other, and one that meets a conflict is tried again.
While the store is away, callers are refused at once after the first one has waited.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import psycopg
from psycopg import errors

from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import MOST_CONNECTIONS, SCHEMA, explanation, pool
from artoo.store.dialect import for_psycopg
from artoo.store.query import Asked, Failed, Query, Row, Values
from artoo.store.schema import check

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

T = TypeVar("T")

WAITING_SECONDS = 2.0
"""For a connection. A task's recall waits for no more: it goes on without memory."""
AWAY_SECONDS = 5.0
"""After a failure to connect, everybody is refused at once for so long."""
MOST_TRIES = 20
"""Of a transaction that gets into the way of others."""
_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_OF_ITS_DATA = (psycopg.DataError, psycopg.IntegrityError)
_SIZE = b"""
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' AND starts_with(c.relname, %s)
"""


class PostgresEngine:
    """Implements `query.Engine`. Connects when it is first used."""

    def __init__(self, address: StoreAddress, failed: Failed) -> None:
        """Raises ConfigurationError when the driver is missing or the address cannot be read."""
        self.address = address
        self._failed = failed
        self._pool = pool(address)
        self._away_until = 0.0
        self._ready = False
        self._opening = Lock()

    def read(self, work: Callable[[Query], T]) -> T:
        """See Engine. A connection that died while it was idle is noticed here, and another one taken."""

        def snapshot(connection: Connection) -> T:
            with connection.pipeline(), connection.transaction():
                connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(_PostgresQuery(connection))

        with self._explained("read"):
            for _ in range(MOST_CONNECTIONS):
                with self._connection() as connection:
                    try:
                        return snapshot(connection)
                    except psycopg.OperationalError:
                        if not connection.closed:
                            raise
            with self._connection() as connection:
                return snapshot(connection)

    def write(self, work: Callable[[Query], T]) -> T:
        """See Engine. It fails as `away` also where a commit got no answer: write what may be written twice."""
        with self._explained("write to"), self._connection() as connection:
            for tries in range(MOST_TRIES):
                try:
                    with connection.transaction():
                        return work(_PostgresQuery(connection))
                except _CONFLICTS:
                    if tries + 1 == MOST_TRIES:
                        raise
                    time.sleep(random.uniform(0.0, 0.005 * 2 ** min(tries, 6)))  # so that both do not meet again
            raise AssertionError("a transaction ends by returning or raising")

    def close(self) -> None:
        """See Engine."""
        self._away_until = float("inf")
        self._pool.close()

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        if time.monotonic() < self._away_until:
            raise self._failed(f"The store {self.address} is away or closed.", "away")
        with self._opening:
            self._pool.open()
        try:
            connection = self._pool.getconn(timeout=WAITING_SECONDS)
        except psycopg.OperationalError as error:  # PoolTimeout and PoolClosed too
            self._away_until = max(self._away_until, time.monotonic() + AWAY_SECONDS)
            raise self._failed(explanation(self.address, "reach", error), "away") from error
        try:
            if not self._ready:
                self._check(connection)
                self._ready = True
            yield connection
        finally:
            self._pool.putconn(connection)  # which looks whether it still works

    def _check(self, connection: Connection) -> None:
        try:
            check(connection, self.address)
        except ConfigurationError as error:
            raise self._failed(str(error), "away") from error

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            kind = "data" if isinstance(error, _OF_ITS_DATA) else "away"
            raise self._failed(explanation(self.address, doing, error), kind) from error


class _PostgresQuery:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """See Query."""
        return self._connection.execute(for_psycopg(sql), values or None).fetchall()

    def run(self, sql: str, values: Values = ()) -> int:
        """See Query."""
        return self._connection.execute(for_psycopg(sql), values or None).rowcount

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """See Query. All are sent before the first answer is waited for."""
        with self._connection.pipeline():
            sent = [
                [self._connection.execute(for_psycopg(sql), values or None) for values in given]
                for sql, given in asked
            ]
            return [[cursor.fetchall() for cursor in cursors] for cursors in sent]

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """See Query."""
        with self._connection.cursor() as cursor:
            cursor.executemany(for_psycopg(sql), values)

    def keep_out(self, tables: str) -> None:
        """See Query."""
        self._connection.execute(b"SET LOCAL statement_timeout = 0")
        self._connection.execute(b"SET LOCAL lock_timeout = 0")
        self._connection.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE".encode())

    def size(self, prefix: str) -> int:
        """See Query."""
        (row,) = self._connection.execute(_SIZE, (SCHEMA, prefix)).fetchall()
        return int(row["bytes"])

    def problems(self) -> list[str]:
        """See Query. The server looks after its files."""
        return []
