"""The query layer on one SQLite file, which several processes may use at once.

The file is in write-ahead logging with full synchronisation: a write that returned is on disk, and a process that
is killed in the middle of one leaves the file as it was. Readers never wait; writers wait for each other. Each
thread has a connection of its own.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from artoo.store.query import Engine, Failure, Hold, Parameters, Query, Row, StoreFailure, Value, typed

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a writer waits for those of other processes."""
_WAL_PAUSE = 0.02
_HEADER = (
    "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
    " (SELECT count(*) FROM sqlite_schema)"
)
"""One statement, so that a file which another process makes at this moment is seen before or after, not between."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file holds: `name` for people, the number that marks its files (`application`), its steps in order.

    A step is statements that end with a semicolon each at the end of a line. One that has shipped is never edited.
    """

    name: str
    application: int
    steps: tuple[str, ...]


class SqliteEngine(Engine):
    """Implements `query.Engine`. The file is made or upgraded when it is opened."""

    def __init__(self, path: Path, schema: Schema, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Raises StoreFailure: damaged, of another program or a newer artoo, not writable, no room."""
        self.place = f"{schema.name} {path}"
        self._path = path
        self._schema = schema
        self._busy_seconds = busy_seconds
        self._own = threading.local()
        self._all: set[sqlite3.Connection] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._connection()

    def read(self, work: Callable[[Query], T]) -> T:
        """See Engine."""
        return self._in_transaction("BEGIN", "read", work)

    def write(self, work: Callable[[Query], T]) -> T:
        """See Engine."""
        return self._in_transaction("BEGIN IMMEDIATE", "write to", work)

    def close(self) -> None:
        """See Engine. The last connection folds the log into the file."""
        with self._lock:
            self._closed = True
            connections, self._all = self._all, set()
        for connection in connections:
            with suppress(sqlite3.Error):
                connection.close()

    def _in_transaction(self, begin: str, doing: str, work: Callable[[Query], T]) -> T:
        connection = self._connection()
        with _explained(self.place, doing):
            connection.execute(begin)
            try:
                result = work(_SqliteQuery(connection))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:  # after some errors SQLite has rolled back already
                    connection.execute("ROLLBACK")
        return result

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreFailure(f"{self.place} is closed; open it again before using it.", "away")
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._opened()
            with self._lock:
                self._all.add(connection)
        return connection

    def _opened(self) -> sqlite3.Connection:
        with _explained(self.place, "open"):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(
                self._path,
                timeout=self._busy_seconds,
                isolation_level=None,
                cached_statements=256,
                check_same_thread=False,  # `close` may come from another thread
            )
            try:
                connection.row_factory = sqlite3.Row
                connection.create_function("now_us", 0, lambda: time.time_ns() // 1_000)
                connection.create_function("exact_sum", 2, _exact_sum, deterministic=True)
                self._check_ours(connection)
                self._use_wal(connection)
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                self._upgrade(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _check_ours(self, connection: sqlite3.Connection) -> None:
        application, version, tables = connection.execute(_HEADER).fetchone()
        if application != self._schema.application and (application or version or tables):
            raise StoreFailure(
                f"{self.place} is a database of some other program; nothing was changed. Name another file.",
                "other",
            )
        if version > len(self._schema.steps):
            raise StoreFailure(
                f"{self.place} was written by a newer artoo (schema {version}, this one knows"
                f" {len(self._schema.steps)}); nothing was changed. Update artoo, or name another file.",
                "other",
            )

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Set write-ahead logging. SQLite does not wait for others here by itself, so this does."""
        until = time.monotonic() + self._busy_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(_WAL_PAUSE)

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Make the steps that the file lacks, all or none; another process may have been faster."""
        if _version(connection) == len(self._schema.steps):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._check_ours(connection)
            for step in self._schema.steps[_version(connection) :]:
                for statement in typed(step, "sqlite").split(";\n"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._schema.application}")
            connection.execute(f"PRAGMA user_version = {len(self._schema.steps)}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


class _SqliteQuery(Query):
    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """See Query."""
        return self._connection.execute(sql, parameters).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """See Query."""
        return self._connection.execute(sql, parameters).rowcount

    def each(self, sql: str, parameters: Sequence[Parameters]) -> list[Sequence[Row]]:
        """See Query."""
        return [self._connection.execute(sql, given).fetchall() for given in parameters]

    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        """See Query."""
        self._connection.executemany(sql, parameters)

    def holding(self, sql: str, hold: Hold) -> str:
        """See Query. A writer is alone, so nothing has to be held."""
        return sql

    def alone(self, what: str) -> None:
        """See Query. A writer is alone."""

    def exact(self, number: int) -> Value:
        """See Query. SQLite's own whole numbers end at 64 bits."""
        return str(number)

    def exact_sum(self, one: str, other: str) -> str:
        """See Query."""
        return f"exact_sum({one}, {other})"


def _exact_sum(one: str | None, other: str | None) -> str:
    return str(int(one or 0) + int(other or 0))


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


_ROOM = "The disk is full or failing; free some room. What was being written is not there."
_BUSY = "Another process has held it for too long; end it, or try again."
_RIGHTS = "It must be a writable file; check its directory, owner and permissions."
_ADVICE: dict[int, tuple[Failure, str]] = {
    sqlite3.SQLITE_FULL: ("full", _ROOM),
    sqlite3.SQLITE_IOERR: ("full", _ROOM),
    sqlite3.SQLITE_CORRUPT: ("damaged", "The file is damaged; restore a copy of it, or move it away."),
    sqlite3.SQLITE_NOTADB: ("damaged", "The file is no database; restore a copy of it, or move it away."),
    sqlite3.SQLITE_BUSY: ("away", _BUSY),
    sqlite3.SQLITE_LOCKED: ("away", _BUSY),
    sqlite3.SQLITE_READONLY: ("other", _RIGHTS),
    sqlite3.SQLITE_PERM: ("other", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("other", _RIGHTS),
    sqlite3.SQLITE_CONSTRAINT: ("data", "This change contradicts what is stored; it was not made."),
    sqlite3.SQLITE_TOOBIG: ("data", "This change is too large; it was not made."),
}


@contextmanager
def _explained(place: str, doing: str) -> Generator[None]:
    """Turn what SQLite and the system say into a StoreFailure."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        nothing: tuple[Failure, str] = ("other", "Nothing was changed; please report this.")
        kind, advice = _ADVICE.get(code & 0xFF, nothing) if isinstance(code, int) else nothing
        raise StoreFailure(f"Cannot {doing} {place}: {error}. {advice}", kind) from error
    except OSError as error:
        advice = "Check that the directory exists, is yours and has room."
        raise StoreFailure(f"Cannot {doing} {place}: {error}. {advice}", "other") from error
