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
from artoo.store.connecting import MOST_CONNECTIONS, explanation, pool
from artoo.store.query import Engine, Hold, Parameters, Query, Row, StoreFailure, Value, for_psycopg
from artoo.store.schema import check

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

T = TypeVar("T")

WAITING_SECONDS = 2.0
"""For a connection."""
AWAY_SECONDS = 5.0
"""After a failure to connect, everybody is refused at once for so long."""
MOST_TRIES = 20
"""Of a transaction that gets into the way of others."""
_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_OF_ITS_DATA = (psycopg.DataError, psycopg.IntegrityError)
_HOLDING = {"wait": " FOR UPDATE", "skip": " FOR UPDATE SKIP LOCKED"}


class PostgresEngine(Engine):
    """Implements `query.Engine`. Connects when it is first used."""

    def __init__(self, address: StoreAddress, *, most: int = MOST_CONNECTIONS) -> None:
        """Raises ConfigurationError when the driver is missing or the address cannot be read."""
        self.place = f"the store {address}"
        self.address = address
        self._pool = pool(address, most=most)
        self._most = most
        self._away_until = 0.0
        self._ready = False
        self._opening = Lock()

    def read(self, work: Callable[[Query], T]) -> T:
        """See Engine. A connection that died while it was idle is noticed here, and another one taken."""

        def snapshot(connection: Connection) -> T:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(_PostgresQuery(connection))

        with self._explained("read"):
            for _ in range(self._most):
                with self._connection() as connection:
                    try:
                        return snapshot(connection)
                    except psycopg.OperationalError:
                        if not connection.closed:
                            raise
            with self._connection() as connection:
                return snapshot(connection)

    def write(self, work: Callable[[Query], T]) -> T:
        """See Engine. Raises StoreFailure `away` also where a commit got no answer: look before writing it again,
        or write what may be written twice.
        """
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
            raise StoreFailure(f"{self.place} is away or closed.", "away")
        with self._opening:
            self._pool.open()
        try:
            connection = self._pool.getconn(timeout=WAITING_SECONDS)
        except psycopg.OperationalError as error:  # PoolTimeout and PoolClosed too
            self._away_until = max(self._away_until, time.monotonic() + AWAY_SECONDS)
            raise StoreFailure(explanation(self.address, "reach", error), "away") from error
        try:
            if not self._ready:
                check(connection, self.address)
                self._ready = True
            yield connection
        finally:
            self._pool.putconn(connection)  # which looks whether it still works

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        try:
            yield
        except _OF_ITS_DATA as error:
            raise StoreFailure(explanation(self.address, doing, error), "data") from error
        except errors.DiskFull as error:
            raise StoreFailure(explanation(self.address, doing, error), "full") from error
        except psycopg.Error as error:
            raise StoreFailure(explanation(self.address, doing, error), "away") from error
        except ConfigurationError as error:
            raise StoreFailure(str(error), "away") from error


class _PostgresQuery(Query):
    dialect = "postgresql"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """See Query."""
        return self._connection.execute(for_psycopg(sql), parameters or None).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """See Query."""
        return self._connection.execute(for_psycopg(sql), parameters or None).rowcount

    def each(self, sql: str, parameters: Sequence[Parameters]) -> list[Sequence[Row]]:
        """See Query. All are sent before the first answer is waited for."""
        with self._connection.pipeline():
            cursors = [self._connection.execute(for_psycopg(sql), given or None) for given in parameters]
            return [cursor.fetchall() for cursor in cursors]

    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        """See Query."""
        with self._connection.cursor() as cursor:
            cursor.executemany(for_psycopg(sql), parameters)

    def holding(self, sql: str, hold: Hold) -> str:
        """See Query."""
        return sql + _HOLDING[hold]

    def alone(self, what: str) -> None:
        """See Query."""
        self._connection.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"artoo {what}",))

    def exact(self, number: int) -> Value:
        """See Query."""
        return number

    def exact_sum(self, one: str, other: str) -> str:
        """See Query."""
        return f"({one} + {other})"
