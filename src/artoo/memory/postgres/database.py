"""The store as memory uses it: short transactions, errors that say what to do, no waiting for one that is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors

from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.memory.codec import RecordDamaged
from artoo.store.address import StoreAddress
from artoo.store.connecting import MOST_CONNECTIONS, explanation, pool
from artoo.store.schema import check

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

WAITING_SECONDS = 2.0
"""For a connection. A task's recall waits for no more: it goes on without memory."""
AWAY_SECONDS = 5.0
"""After a failure to connect, everybody is refused at once for so long."""
ATTEMPTS = 5
_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_OF_ITS_DATA = (psycopg.DataError, psycopg.IntegrityError)

T = TypeVar("T")
Row = dict[str, Any]
"""A row as psycopg gives it. Stays within this package."""


class MemoryAway(MemoryStoreError):
    """The store cannot be reached or used now; what was to be written is not there yet."""


class Database:
    """Transactions over a pool. Safe to use from any thread; never from the event loop, because it blocks."""

    def __init__(self, address: StoreAddress) -> None:
        self.address = address
        self._pool = pool(address)
        self._away_until = 0.0
        self._ready = False
        self._opening = Lock()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work`, whose statements each see what was committed before them. Raises MemoryStoreError."""
        with self._explained("read"):
            return self._on_a_live_one(work)

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        """Runs `work`, whose statements all see one moment of the store. Raises MemoryStoreError."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(connection)

        with self._explained("read"):
            return self._on_a_live_one(whole)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in a transaction: all of it or nothing, committed when this returns.

        A conflict with another transaction is tried again. Raises RecordDamaged when the data cannot be stored,
        MemoryAway when it may be stored later.
        """
        with self._explained("write to"), self._connection() as connection:
            for attempt in range(ATTEMPTS):
                try:
                    with connection.transaction():
                        return work(connection)
                except _CONFLICTS:
                    if attempt == ATTEMPTS - 1:
                        raise
            raise AssertionError("a transaction ends by returning or raising")

    def _on_a_live_one(self, work: Callable[[Connection], T]) -> T:
        """Runs `work`, which changes nothing. A connection that died while it was idle, because the server was
        started anew, is noticed only when it is used: then another one is taken.
        """
        for _ in range(MOST_CONNECTIONS):
            with self._connection() as connection:
                try:
                    return work(connection)
                except psycopg.OperationalError:
                    if not connection.closed:
                        raise
        with self._connection() as connection:
            return work(connection)

    def close(self) -> None:
        """Ends all connections. Idempotent."""
        self._away_until = float("inf")
        self._pool.close()

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        if time.monotonic() < self._away_until:
            raise MemoryAway(f"The store {self.address} is away or closed.")
        with self._opening:
            self._pool.open()
        try:
            connection = self._pool.getconn(timeout=WAITING_SECONDS)
        except psycopg.OperationalError as error:  # PoolTimeout and PoolClosed too
            self._away_until = max(self._away_until, time.monotonic() + AWAY_SECONDS)
            raise MemoryAway(explanation(self.address, "reach", error)) from error
        with self._pool_returns(connection):
            if not self._ready:
                check(connection, self.address)
                self._ready = True
            yield connection

    @contextmanager
    def _pool_returns(self, connection: Connection) -> Generator[None]:
        try:
            yield
        finally:
            self._pool.putconn(connection)  # which looks whether it still works

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        try:
            yield
        except _OF_ITS_DATA as error:
            raise RecordDamaged(explanation(self.address, doing, error)) from error
        except psycopg.Error as error:
            raise MemoryAway(explanation(self.address, doing, error)) from error
        except ConfigurationError as error:
            raise MemoryAway(str(error)) from error
