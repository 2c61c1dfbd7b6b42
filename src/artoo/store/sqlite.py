"""The SQLite engine, with file schema, busy timeout, and advice for errors.

The file uses write-ahead logging with full synchronisation. So a write is on disk when it returns, and if a process
is killed during a write, the file is unchanged. Readers never wait. Writers wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar
from uuid import UUID

from artoo.store.query import Asked, Dialect, Failed, Failure, Hold, Query, Row, Values

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a writer waits for the writers of other processes."""
_WAL_PAUSE = 0.02
_HEADER = (
    "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
    " (SELECT count(*) FROM sqlite_schema)"
)
"""This is one statement, so that the state of a file is never read while another process is creating it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a file: the name that users see, the application id, and the steps in order.

    A step is a list of statements. Each statement ends with a semicolon at the end of a line. Released steps are
    never edited.
    """

    name: str
    application: int
    steps: tuple[str, ...]
    if_damaged: str = "Move it away (a new one is made), or put a copy of it back."
    setting: str = ""
    """Advice for the user if the file is damaged, and the name of the setting that gives the path of the file."""


class SqliteEngine:
    """The engine of a file (it implements `query.Engine`). The file is created or upgraded when it is opened."""

    def __init__(self, path: Path, schema: Schema, failed: Failed, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the file. Raises the exceptions of `failed` if the file is damaged, belongs to another program or to
        a newer artoo, or is not writable, or if the disk is full."""
        self.path = path
        self.place = f"{schema.name} {path}"
        self._schema = schema
        self._failed = failed
        self._busy_seconds = busy_seconds
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._closed = False
        with self._explained("open"):
            self._idle.append(self._opened())

    def read(self, work: Callable[[Query], T]) -> T:
        """Implement `Engine.read`."""
        return self._in_transaction("BEGIN", "read", work)

    def write(self, work: Callable[[Query], T]) -> T:
        """Implement `Engine.write`."""
        return self._in_transaction("BEGIN IMMEDIATE", "write to", work)

    def forget(self, receipts: Sequence[UUID]) -> None:
        """Implement `Engine.forget`. There are no receipts in a file."""

    def close(self) -> None:
        """Implement `Engine.close`. When the last connection is closed, the write-ahead log is merged into the
        file."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            _close(connection)

    def _in_transaction(self, begin: str, doing: str, work: Callable[[Query], T]) -> T:
        with self._explained(doing), self._connection() as connection:
            connection.execute(begin)
            try:
                result = work(_SqliteQuery(connection))
                connection.execute("COMMIT")
            finally:
                # After some errors SQLite has already rolled back.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return result

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise self._failed(f"{self.place} is closed; open it again before using it.", "away")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._opened()
        try:
            yield connection
        finally:
            with self._lock:
                if not self._closed:
                    self._idle.append(connection)
                    connection = None
            if connection is not None:
                _close(connection)

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_seconds,
            isolation_level=None,
            cached_statements=256,
            # Only one thread at a time uses the connection, but it is not always the same thread.
            check_same_thread=False,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.create_function("now_us", 0, lambda: time.time_ns() // 1_000)
            connection.create_function("exact_sum", 2, _exact_sum, deterministic=True)
            ours = self._is_ours(connection)
            # A restored copy of the file may have another journal mode.
            self._use_wal(connection)
            if not ours:
                self._upgrade(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file has the schema of this program. If False, the file must be created or
        upgraded."""
        application, version, tables = connection.execute(_HEADER).fetchone()
        newest = len(self._schema.steps)
        another = f"another file{self._schema.setting and f' in {self._schema.setting}'}"
        if application != self._schema.application and (application or version or tables):
            why = "is a database of some other program; nothing was changed. Name"
            raise self._failed(f"{self.place} {why} {another}.", "other")
        if version > newest:
            why = f"was written by a newer artoo (schema {version}, this one knows {newest}); nothing was changed."
            raise self._failed(f"{self.place} {why} Update artoo, or name {another}.", "other")
        return version == newest

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch the file to write-ahead logging permanently. SQLite does not wait for other processes here, so
        this method tries again itself."""
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
        """Apply the missing steps in one transaction, unless another process has applied them in the meantime."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._is_ours(connection):
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                for step in self._schema.steps[version:]:
                    for statement in step.split(";\n"):
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._schema.application}")
                connection.execute(f"PRAGMA user_version = {len(self._schema.steps)}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def _explained(self, doing: str) -> Generator[None]:
        """Return a context that converts errors of SQLite and of the operating system to exceptions with advice for
        the user."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            kind, advice = _ADVICE.get(code & 0xFF, _UNKNOWN) if isinstance(code, int) else _UNKNOWN
            advice += f" {self._schema.if_damaged}" if advice is _DAMAGED else ""
            raise self._failed(f"Cannot {doing} {self.place}: {error}. {advice}", kind) from error
        except OSError as error:
            advice = "Check that the directory exists, is yours and has room."
            raise self._failed(f"Cannot {doing} {self.place}: {error}. {advice}", "other") from error


class _SqliteQuery:
    dialect: Dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """Implement `Query.all`."""
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Values = ()) -> int:
        """Implement `Query.run`."""
        return self._connection.execute(sql, values).rowcount

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """Implement `Query.each`."""
        execute = self._connection.execute
        return [[execute(sql, values).fetchall() for values in given] for sql, given in asked]

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Implement `Query.many`."""
        self._connection.executemany(sql, values)

    def holding(self, sql: str, hold: Hold) -> str:
        """Implement `Query.holding`. There is only one writer, so no lock is needed."""
        return sql

    def alone(self, what: str) -> None:
        """Implement `Query.alone`. There is only one writer, so no lock is needed."""

    def keep_out(self, tables: str) -> None:
        """Implement `Query.keep_out`. There is only one writer, so no lock is needed."""

    def first_time(self, receipt: UUID, forget: Sequence[UUID]) -> bool:
        """Implement `Query.first_time`. The result of a commit to a file is never lost, so no receipt is needed."""
        return True

    def size(self, prefix: str) -> int:
        """Implement `Query.size`. The result is the size of the whole file."""
        (size,) = self._connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        return int(size[0])

    def problems(self) -> list[str]:
        """Implement `Query.problems`."""
        found = [str(row[0]) for row in self._connection.execute("PRAGMA quick_check(20)")]
        return [each for each in found if each != "ok"]


def _exact_sum(one: str, other: str) -> str:
    return str(int(one) + int(other))


def _close(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.close()


_ROOM = "The disk is full or failing; free some room. What was being written is lost."
_BUSY = "Another process has held it for too long; end it, or try again."
_RIGHTS = "It must be a writable file; check its directory, owner and permissions."
_DAMAGED = "The file is damaged."
_UNKNOWN: tuple[Failure, str] = ("data", "Nothing was changed; please report this.")
_ADVICE: dict[int, tuple[Failure, str]] = {
    sqlite3.SQLITE_FULL: ("full", _ROOM),
    sqlite3.SQLITE_IOERR: ("other", _ROOM),
    sqlite3.SQLITE_CORRUPT: ("other", _DAMAGED),
    sqlite3.SQLITE_NOTADB: ("other", _DAMAGED),
    sqlite3.SQLITE_BUSY: ("stuck", _BUSY),
    sqlite3.SQLITE_LOCKED: ("stuck", _BUSY),
    sqlite3.SQLITE_READONLY: ("other", _RIGHTS),
    sqlite3.SQLITE_PERM: ("other", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("other", _RIGHTS),
}
