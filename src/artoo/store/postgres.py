"""The PostgreSQL engine, with its connection pool, tries at conflicts, and days of commit receipts.

Transactions run concurrently on connections of a pool. A transaction that meets a conflict is tried again. While
the store cannot be reached, the first caller waits, and the callers after it are refused at once.

If a connection breaks, the answer to a COMMIT can be lost with it. Therefore a transaction may store a receipt,
which is a row with a token that the caller chose (`Query.first_time`). A caller that tries again with the same
token learns whether the first try was committed. If the first try is still open, the caller waits for its end. If
the first try arrives too late, it fails because its primary key exists already. The number of the transaction
(`pg_xact_status`) cannot replace the receipt, because a server may reuse numbers after a crash.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import DictRow
from psycopg_pool import ConnectionPool, PoolTimeout

from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import CONNECT_SECONDS, MOST_CONNECTIONS, SCHEMA, check_installed, explanation, settings
from artoo.store.pooled import Connection as PlainConnection
from artoo.store.query import Asked, Dialect, Failed, Failure, Hold, Query, Row, Values
from artoo.store.schema import check

if TYPE_CHECKING:
    Connection = psycopg.Connection[DictRow]

T = TypeVar("T")

logger = logging.getLogger(__name__)

WAITING_SECONDS = 2.0
"""Maximum wait for a connection. When a task recalls from memory, it must not wait longer. It then goes on without
memory."""
AWAY_SECONDS = 5.0
"""After a failed connection, all callers are refused at once for this time."""
MOST_TRIES = 20
"""Maximum number of tries of a transaction that meets conflicts."""
KEPT_DAYS = 30
"""Number of days after which the receipts of killed processes are deleted."""

_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_AWAY = (
    PoolTimeout, errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
    # The server was a primary before, but now it is read-only.
    errors.ReadOnlySqlTransaction,
)  # fmt: skip
_NO_CONNECTION = (None, "08000", "08001", "08003", "08006")
"""The SQLSTATE codes of connection errors. None stands for an error that the driver itself detects. Errors that the
driver detects itself have no code."""

_HOLDING = {"wait": " FOR UPDATE", "skip": " FOR UPDATE SKIP LOCKED"}
_RECEIPT = b"INSERT INTO receipts (token) VALUES (%s) ON CONFLICT DO NOTHING"
_FORGET = b"DELETE FROM receipts WHERE token = ANY(%s)"
_SWEEP = b"DELETE FROM receipts WHERE token = ANY(%s) OR at_us < now_us() - %s"
_SIZE = b"""
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
FROM pg_class AS c WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' AND starts_with(c.relname, %s)
"""

_TOKENS = re.compile(r"'(?:[^']|'')*'|\?|:([a-z][a-z0-9_]*)|%")


class PostgresEngine:
    """The engine of a shared store. Implements `query.Engine`. It connects when it is used first."""

    def __init__(
        self,
        address: StoreAddress,
        failed: Failed,
        *,
        waiting: float | None = None,
        refusing: float | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        """Prepare a pool of connections. Raises ConfigurationError if the driver is missing or the address is
        invalid.

        `waiting` is the number of seconds to wait for a connection. For `refusing` seconds after a failed
        connection, all calls fail at once.
        """
        check_installed()
        self.address = address
        self.place = f"the store {address}"
        self._failed = failed
        self._waiting = waiting
        self._refusing = refusing
        self._most = most
        self._why: psycopg.Error | None = None
        self._away_until = 0.0
        self._ready = False
        driver = logging.getLogger("psycopg")
        # psycopg itself sets this log level. If there is another level, the user chose it.
        if driver.level == logging.WARNING:
            # psycopg logs a warning for each failed try and each lost connection, but callers already get one error
            # with the reason.
            driver.setLevel(logging.ERROR)
        self._pool = self._new_pool()

    def read(self, work: Callable[[Query], T]) -> T:
        """Implement `Engine.read`. If an idle connection has died, this is detected here, and the next connection
        is tried."""
        with self._explained("read"):
            for _ in range(self._most):
                with self._connection() as connection:
                    try:
                        return self._snapshot(connection, work)
                    except psycopg.OperationalError:
                        if not connection.closed:
                            raise
            with self._connection() as connection:
                return self._snapshot(connection, work)

    def write(self, work: Callable[[Query], T]) -> T:
        """Implement `Engine.write`. It fails with `unanswered` if it is unknown whether the commit succeeded."""
        with self._explained("write to"), self._connection() as connection:
            for tries in range(MOST_TRIES):
                try:
                    return self._committed(connection, work)
                except _CONFLICTS:
                    if tries + 1 == MOST_TRIES:
                        raise
                    # The pause is random, so that the two transactions do not meet again.
                    time.sleep(random.uniform(0.0, 0.005 * 2 ** min(tries, 6)))
            raise AssertionError("a transaction ends by returning or raising")

    def forget(self, receipts: Sequence[UUID]) -> None:
        """Implement `Engine.forget`."""
        try:
            with self._pool.connection(timeout=1.0) as connection:
                connection.execute(_SWEEP, (list(receipts), KEPT_DAYS * 86_400_000_000))
        except psycopg.Error as error:
            logger.debug("receipts of writes stay in the store for a while: %s", error)

    def close(self) -> None:
        """Implement `Engine.close`."""
        self._away_until = float("inf")
        self._pool.close()

    def _new_pool(self) -> ConnectionPool[Connection]:
        engine, given = self, settings(self.address)

        class Noting(PlainConnection):
            @classmethod
            def connect(cls, *args: Any, **named: Any) -> Any:
                """Connect, and store the reason if this fails, because a pool itself only reports a timeout."""
                try:
                    connection = cast("Any", super()).connect(*args, **named)
                except psycopg.Error as error:
                    engine._why = error
                    raise
                engine._why = None
                return connection

        return ConnectionPool(
            given.pop("conninfo"),
            connection_class=Noting,
            kwargs=given,
            min_size=0,
            max_size=self._most,
            open=False,
            timeout=CONNECT_SECONDS,
        )

    def _snapshot(self, connection: Connection, work: Callable[[Query], T]) -> T:
        connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            return work(_PostgresQuery(connection))
        finally:
            _roll_back(connection)

    def _committed(self, connection: Connection, work: Callable[[Query], T]) -> T:
        connection.execute(b"BEGIN")
        try:
            result = work(_PostgresQuery(connection))
            try:
                ended = self._commit(connection)
            except psycopg.OperationalError as error:
                # A server that shuts down sends this error before it closes the connection, whether or not the
                # commit was made.
                if connection.closed or _is_away(error):
                    raise self._failed(explanation(self.address, "write to", error), "unanswered") from error
                raise
            if ended != "COMMIT":
                said = f"{self.place} did not commit, but said {ended}; please report this."
                raise self._failed(said, "other")
            return result
        finally:
            _roll_back(connection)

    def _commit(self, connection: Connection) -> str | None:
        return connection.execute(b"COMMIT").statusmessage

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        if time.monotonic() < self._away_until:
            raise self._failed(f"The store {self.address} is away or closed.", "away")
        self._pool.open()
        try:
            connection = self._pool.getconn(WAITING_SECONDS if self._waiting is None else self._waiting)
        except psycopg.OperationalError as error:
            # PoolTimeout and PoolClosed are subclasses of OperationalError.
            refusing = AWAY_SECONDS if self._refusing is None else self._refusing
            self._away_until = max(self._away_until, time.monotonic() + refusing)
            raise self._failed(explanation(self.address, "reach", self._why or error), "away") from error
        try:
            if not self._ready:
                self._check(connection)
                self._ready = True
            yield connection
        finally:
            # The pool checks here whether the connection still works.
            self._pool.putconn(connection)

    def _check(self, connection: Connection) -> None:
        try:
            check(connection, self.address)
        except ConfigurationError as error:
            raise self._failed(str(error), "unready") from error

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._failed(explanation(self.address, doing, error), _kind(error)) from error


def _kind(error: psycopg.Error) -> Failure:
    if _is_away(error):
        return "away"
    if isinstance(error, errors.InsufficientPrivilege):
        return "refused"
    return "data" if isinstance(error, psycopg.DataError | psycopg.IntegrityError) else "stuck"


def _is_away(error: psycopg.Error) -> bool:
    """Return whether trying again later may help, because there is no connection, or because the server stops,
    starts or is overloaded."""
    lost = isinstance(error, psycopg.OperationalError) and error.sqlstate in _NO_CONNECTION
    return lost or isinstance(error, _AWAY)


def _roll_back(connection: Connection) -> None:
    """Roll back a transaction that is still open. A broken connection is closed instead."""
    if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        try:
            connection.execute(b"ROLLBACK")
        except psycopg.OperationalError:
            connection.close()


class _PostgresQuery:
    dialect: Dialect = "postgresql"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """Implement `Query.all`."""
        return self._connection.execute(for_psycopg(sql), values or None).fetchall()

    def run(self, sql: str, values: Values = ()) -> int:
        """Implement `Query.run`."""
        return self._connection.execute(for_psycopg(sql), values or None).rowcount

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """Implement `Query.each`. All statements are sent before the first answer is awaited."""
        with self._connection.pipeline():
            sent = [
                [self._connection.execute(for_psycopg(sql), values or None) for values in given]
                for sql, given in asked
            ]
            return [[cursor.fetchall() for cursor in cursors] for cursors in sent]

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Implement `Query.many`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(for_psycopg(sql), values)

    def holding(self, sql: str, hold: Hold) -> str:
        """Implement `Query.holding`."""
        return sql + _HOLDING[hold]

    def alone(self, what: str) -> None:
        """Implement `Query.alone`."""
        self._connection.execute(b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"artoo {what}",))

    def keep_out(self, tables: str) -> None:
        """Implement `Query.keep_out`."""
        self._connection.execute(b"SET LOCAL statement_timeout = 0")
        self._connection.execute(b"SET LOCAL lock_timeout = 0")
        self._connection.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE".encode())

    def first_time(self, receipt: UUID, forget: Sequence[UUID]) -> bool:
        """Implement `Query.first_time`."""
        try:
            new = self._connection.execute(_RECEIPT, (receipt,)).rowcount > 0
        except errors.LockNotAvailable as error:
            # The caller has to wait longer until its earlier try has ended.
            raise psycopg.OperationalError("an earlier try of this write is still under way") from error
        if forget:
            self._connection.execute(_FORGET, (list(forget),))
        return new

    def size(self, prefix: str) -> int:
        """Implement `Query.size`."""
        (row,) = self._connection.execute(_SIZE, (SCHEMA, prefix)).fetchall()
        return int(row["bytes"])

    def problems(self) -> list[str]:
        """Implement `Query.problems`. The server checks its files itself."""
        return []


@lru_cache(maxsize=1_024)
def for_psycopg(sql: str) -> bytes:
    """Convert SQL to psycopg's parameter style: `?` becomes `%s` and `:name` becomes `%(name)s`.

    Text between quotes is left as it is, and each percent sign is doubled.
    """
    return _TOKENS.sub(_token, sql).encode()


def _token(match: re.Match[str]) -> str:
    text = match[0]
    if text == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return text.replace("%", "%%")
