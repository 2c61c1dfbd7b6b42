"""The database in a PostgreSQL that several machines share (SPEC section 13).

Transactions run in threads, as they do on SQLite, each on a connection of a pool. They run at the same time: a row
that decides is held (`Reading.one`), and two that hold one another's are tried again. Time is the store's own. When
the store is away, what is asked of it waits, at most `patience` seconds, and nothing is lost or done twice: of a
commit whose answer did not come, the store is asked what became of it.

For that each write leaves a receipt, a row in its own transaction, and takes away those of earlier ones. The number
of a transaction (`pg_xact_status`) does not prove it: a server that crashed, or another that took over, gives
numbers again of which nothing had reached the disk, and says `committed` of another transaction.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID, uuid4

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from artoo.agents.storage import monotonic_clock as steady
from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading, Writing
from artoo.cluster.pg_listen import Listener
from artoo.cluster.pg_transaction import SharedEngine
from artoo.contracts.errors import ActivityStoreError, StoreAway, StoreRefused
from artoo.ports.clock import Clock
from artoo.store.address import StoreAddress
from artoo.store.connecting import MOST_CONNECTIONS, explanation, pool
from artoo.store.schema import check

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    from artoo.store.pooled import Pool

    Connection = psycopg.Connection[DictRow]

T = TypeVar("T")

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 20.0
"""How long a command waits for a store that is away. `artoo serve` waits until it is back."""

MOST_TRIES = 20
"""Of a transaction that gets into the way of others."""

_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)

KEPT_DAYS = 30
"""Of killed processes, and of what was found void; who asks later than that is told that it is not known."""

_VOID = b"INSERT INTO receipts (token, void) VALUES (%s, TRUE) ON CONFLICT DO NOTHING"
_FOUND = b"SELECT void FROM receipts WHERE token = %s"
_SWEEP = b"DELETE FROM receipts WHERE token = ANY(%s) OR at_us < now_us() - %s"

_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT now_us() AS us"
_WRITE = b"BEGIN; SELECT now_us() AS us"


class _Away(Exception):
    """The store cannot be reached; nothing of this was done, or, of a single statement, that is not known."""


class _Unanswered(Exception):
    """A commit was sent, and no answer came. `token` is its receipt's, `result` what it gave if it was done."""

    def __init__(self, token: UUID, result: object) -> None:
        super().__init__(str(token))
        self.token = token
        self.result = result


class _Receipts:
    """Those of one process. Its threads share it."""

    def __init__(self) -> None:
        self._answered: list[UUID] = []
        self._lock = threading.Lock()

    def answered(self, tokens: Iterable[UUID]) -> None:
        """Their writers know: they may go with the next write."""
        with self._lock:
            self._answered += tokens

    def to_forget(self) -> list[UUID]:
        """Those, to be forgotten by the caller alone."""
        with self._lock:
            answered, self._answered = self._answered, []
            return answered

    def sweep(self, connection: Connection) -> None:
        """Leaves nothing behind, and nothing old of processes that were killed. A process that has written nothing
        has nothing to do here. Raises psycopg.Error."""
        if answered := self.to_forget():
            connection.execute(_SWEEP, (answered, KEPT_DAYS * 86_400_000_000))


class SharedDatabase(Database):
    """An open database in a store. Use `await SharedDatabase.open(…)`, then as an async context manager."""

    def __init__(
        self, address: StoreAddress, holder: str, connections: Pool, patience: float, clock: Clock | None
    ) -> None:
        super().__init__(f"the store {address}", holder)
        self.address = address
        self._pool = connections
        self._patience = patience
        self._seconds = min(patience, PATIENCE_SECONDS)
        self._clock = clock
        self._receipts = _Receipts()
        self._store = ""
        self._threads: ThreadPoolExecutor | None = None
        self._listener: Listener | None = None
        self._away = False
        self._told: list[Callable[[str], None]] = [logger.warning]

    @classmethod
    async def open(
        cls,
        address: StoreAddress,
        *,
        holder: str,
        patience: float = PATIENCE_SECONDS,
        clock: Clock | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> SharedDatabase:
        """Open the database. `clock` None: the store's own, as several machines need it.

        Raises ConfigurationError (not set up, another schema) and StoreAway.
        """
        opened = cls(address, holder, pool(address, most=most), patience, clock)
        opened._threads = ThreadPoolExecutor(max_workers=most, thread_name_prefix="artoo-store")
        try:
            opened._pool.open(wait=False)
            opened._store = await opened._patiently(lambda: opened._in_thread(opened._checked))
        except BaseException:
            await opened.close()
            raise
        return opened

    def on_away(self, tell: Callable[[str], None]) -> None:
        """Calls `tell` with a sentence when the store goes away and when it is back."""
        self._told.append(tell)

    def on_written(self, call: Callable[[], None]) -> Callable[[], None]:
        """See Database. What other machines write is told too, as soon as the store says so."""
        if self._listener is None:
            loop = asyncio.get_running_loop()
            self._listener = Listener(self.address, self.holder, lambda: self._tell_on(loop))
            self._listener.start()
        return super().on_written(call)

    async def read(self, work: Callable[[Reading], T]) -> T:
        """See Database."""
        return await self._patiently(lambda: self._in_thread(lambda: self._read(work)))

    async def write(self, work: Callable[[Writing], T]) -> T:
        """See Database."""
        result = await self._patiently(lambda: self._in_thread(lambda: self._write(work)))
        self._tell()
        return result

    async def version(self) -> int:
        """See Database: arrivals."""
        return await self.read(lambda reading: reading.count("SELECT CAST(sum(count) AS bigint) FROM arrivals"))

    async def check(self) -> tuple[str, ...]:
        """Nothing: the server checks its files itself (`data_checksums`, `pg_amcheck`)."""
        await self.version()
        return ()

    async def close(self) -> None:
        """See Database."""
        threads, self._threads = self._threads, None
        if threads is None:
            return
        if self._listener is not None:
            self._listener.stop()
        await asyncio.get_running_loop().run_in_executor(threads, self._end)
        threads.shutdown(wait=False)

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Awaits an `attempt`; while the store is away, again and again."""
        until, tries = time.monotonic() + self._patience, 0
        while True:
            try:
                result = await attempt()
            except _Unanswered as error:
                found, result = await self._after(error, until)
                if found:
                    return result
            except _Away as error:
                self._say_away(error)
                if time.monotonic() >= until:
                    raise StoreAway(str(error)) from error.__cause__
                await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
                tries += 1
            else:
                self._say_back()
                return result

    async def _after(self, lost: _Unanswered, until: float) -> tuple[bool, Any]:
        """Whether a commit without an answer was done, and what it gave. Raises StoreAway when that stays open."""
        while True:
            try:
                done = await self._in_thread(lambda: self._settled(lost.token))
            except _Away as error:
                self._say_away(error)
                if time.monotonic() >= until:
                    said = (
                        f"{error} Whether what was being written is there is not known; look before trying again."
                    )
                    raise StoreAway(said) from error.__cause__
                done = None
            if done is not None:
                return done, lost.result
            await asyncio.sleep(_PAUSES[1])

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise ActivityStoreError(f"The books in {self.place} are closed; open them again before using them.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _checked(self) -> str:
        with self._connection("open") as connection:
            check(connection, self.address)
            row = connection.execute("SELECT value FROM marks WHERE name = 'store'").fetchone()
            return "" if row is None else str(row["value"])

    def _settled(self, token: UUID) -> bool | None:
        with self._connection("write to") as connection:
            done = settle(connection, token)
        if done:
            self._receipts.answered([token])
        return done

    def _end(self) -> None:
        """Closes the pool; what cannot be tidied up now goes when it is old."""
        try:
            if not self._away:
                with self._pool.connection(timeout=1.0) as connection:
                    self._receipts.sweep(connection)
        except psycopg.Error as error:
            logger.debug("receipts of writes stay in the store for a while: %s", error)
        self._pool.close()

    def _read(self, work: Callable[[Reading], T]) -> T:
        with self._connection("read") as connection:
            begun = _begin(connection, _READ)
            try:
                now, us = self._time(begun)
                return work(Reading(SharedEngine(connection, self._store, self.holder), now, us, self.holder))
            finally:
                _roll_back(connection)

    def _write(self, work: Callable[[Writing], T]) -> T:
        for tries in range(MOST_TRIES):
            try:
                return self._write_once(work)
            except (errors.SerializationFailure, errors.DeadlockDetected) as error:
                if tries + 1 == MOST_TRIES:
                    raise ActivityStoreError(explanation(self.address, "write to", error)) from error
                time.sleep(random.uniform(0.0, 0.005 * 2 ** min(tries, 6)))
        raise AssertionError("unreachable")

    def _write_once(self, work: Callable[[Writing], T]) -> T:
        with self._connection("write to") as connection:
            engine = SharedEngine(connection, self._store, self.holder)
            begun = _begin(connection, _WRITE)
            try:
                now, us = self._time(begun)
                result = work(Writing(engine, now, us, self.holder))
                self._commit(connection, engine, uuid4(), result)
            finally:
                _roll_back(connection)
            try:
                engine.notify()
            except psycopg.Error as error:  # it is written; who waits looks for itself
                logger.debug("the store was not asked to wake anybody: %s", error)
            return result

    def _commit(self, connection: Connection, engine: SharedEngine, token: UUID, result: object) -> None:
        forgotten = self._receipts.to_forget()
        try:
            ended = engine.commit(token, forgotten)
        except BaseException as error:
            self._receipts.answered(forgotten)
            # A server that ends says so before the connection is gone, be the commit done or not.
            if isinstance(error, psycopg.OperationalError) and (connection.closed or _is_away(error)):
                raise _Unanswered(token, result) from error
            raise
        if ended != "COMMIT":
            raise ActivityStoreError(f"{self.place} did not commit, but said {ended}; please report this.")
        self._receipts.answered([token])

    def _time(self, begun: DictRow) -> tuple[Any, int]:
        now = steady.moment(int(begun["us"])) if self._clock is None else self._clock.now()
        return now, steady.microseconds(now)

    @contextmanager
    def _connection(self, doing: str) -> Generator[Connection]:
        """One of the pool. Raises as `_explained`."""
        with _explained(self.address, doing), self._pool.connection(timeout=self._seconds) as connection:
            yield connection

    def _say_away(self, error: _Away) -> None:
        if not self._away:
            self._away = True
            for tell in self._told:
                tell(f"{error} Nothing new is begun until then.")

    def _say_back(self) -> None:
        if self._away:
            self._away = False
            for tell in self._told:
                tell(f"The store {self.address} is back; what waited is being written.")


def _begin(connection: Connection, statement: bytes) -> DictRow:
    """Begins a transaction and takes the time, in one round trip."""
    cursor = connection.execute(statement, prepare=False)
    cursor.nextset()
    row = cursor.fetchone()
    assert row is not None
    return row


def _roll_back(connection: Connection) -> None:
    """Ends a transaction that is still open; a broken connection has ended it already."""
    if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        try:
            connection.execute(b"ROLLBACK")
        except psycopg.OperationalError:
            connection.close()


def settle(connection: Connection, token: UUID) -> bool | None:
    """Whether this write was committed; from now on it cannot be any more. None: the server is still at it.

    Waits for a transaction that is still open. Raises psycopg.Error.
    """
    try:
        connection.execute(_VOID, (token,))
    except errors.LockNotAvailable:
        return None
    row = connection.execute(_FOUND, (token,)).fetchone()
    return None if row is None else not row["void"]


@contextmanager
def _explained(address: StoreAddress, doing: str) -> Generator[None]:
    """Raise _Away, or ActivityStoreError for what trying again does not fix. Those who were in each other's way
    (SerializationFailure, DeadlockDetected) are told so."""
    try:
        yield
    except (errors.SerializationFailure, errors.DeadlockDetected):
        raise
    except psycopg.Error as error:
        said = explanation(address, doing, error)
        if _is_away(error):
            raise _Away(said) from error
        if isinstance(error, errors.InsufficientPrivilege):
            raise StoreRefused(said) from error
        raise ActivityStoreError(said) from error


def _is_away(error: psycopg.Error) -> bool:
    """True if trying again later may help: no connection, a lost one, a server that stops, starts or is full."""
    if isinstance(error, PoolTimeout | errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow):
        return True
    if isinstance(error, errors.TooManyConnections | errors.IdleInTransactionSessionTimeout):
        return True
    # Without a code from the server, it was the connection. A read-only server is one that was a primary.
    return isinstance(error, errors.ReadOnlySqlTransaction) or (
        isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, "08000", "08003", "08006", "08001")
    )
