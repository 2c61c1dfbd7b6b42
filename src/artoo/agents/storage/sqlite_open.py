"""Opening the database file, bringing it up to date, and errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from artoo.contracts.errors import ActivityStoreError

APPLICATION_ID = 0x41525454
"""`ARTT` in the file's header: some other program's database is not mistaken for ours."""

_WAL_PAUSE = 0.02

_HEADER = (
    "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
    " (SELECT count(*) FROM sqlite_schema)"
)
"""One statement, so that a file which another process makes at this moment is seen before or after, not between."""


@cache
def migrations() -> tuple[tuple[str, ...], ...]:
    """The statements of each step (`migrations/NNNN_name.sql`): step n brings a file from version n to n + 1."""
    folder = files("artoo.agents.storage").joinpath("migrations")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(_statements(file.read_text("utf-8")) for file in found)


def _statements(text: str) -> tuple[str, ...]:
    """The statements of a file, one by one: `executescript` would commit the transaction around it."""
    found, begun = list[str](), ""
    for line in text.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
    return tuple(found)


def connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection to an up-to-date file, made when absent. Raises ActivityStoreError."""
    with explained(path, "open"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, cached_statements=256)
        try:
            connection.row_factory = sqlite3.Row
            _check_ours(connection, path)
            _use_wal(connection, busy_seconds)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def explained(path: Path, doing: str) -> Generator[None]:
    """Turns what SQLite and the system say into an ActivityStoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise ActivityStoreError(_explanation(path, doing, error)) from error


def is_full(error: ActivityStoreError) -> bool:
    """Whether it was only room that was missing: nothing was written, and trying again may help."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_FULL


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raises ActivityStoreError for another program's file, and for one of a newer artoo."""
    application, version, tables = connection.execute(_HEADER).fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise ActivityStoreError(
            f"{path} is a database of some other program; nothing was changed."
            " Let runtime.memory.episodic.activity_db name another file."
        )
    if version > (known := len(migrations())):
        raise ActivityStoreError(
            f"{path} was written by a newer artoo (schema {version}, this one knows {known});"
            " nothing was changed. Update artoo, or name another file in runtime.memory.episodic.activity_db."
        )


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Sets write-ahead logging. SQLite does not wait for others here by itself, so this does."""
    until = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_WAL_PAUSE)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Makes the steps that the file lacks, all or none; another process may have been faster."""
    if _pragma(connection, "user_version") == len(migrations()):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check_ours(connection, path)
        for step in migrations()[_pragma(connection, "user_version") :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations())}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


_RESTORE = (
    "restore a copy of it, with what is newer than the copy lost; or move it away, and the board, the letters, the"
    " agents and what these learnt begin anew. Files that wait stay in the home either way: artoo status."
)

_ADVICE = {
    sqlite3.SQLITE_FULL: "The disk is full; free some room. What was being written is not there.",
    sqlite3.SQLITE_IOERR: "The disk is full or failing; free some room. What was being written is not there.",
    sqlite3.SQLITE_CORRUPT: f"The file is damaged; {_RESTORE}",
    sqlite3.SQLITE_NOTADB: f"The file is no database; {_RESTORE}",
    sqlite3.SQLITE_BUSY: "Another process has held it for too long; end it, or try again.",
    sqlite3.SQLITE_LOCKED: "Another process has held it for too long; end it, or try again.",
    sqlite3.SQLITE_READONLY: "It must be writable; check its owner and permissions, and those of its directory.",
    sqlite3.SQLITE_PERM: "It must be writable; check its owner and permissions, and those of its directory.",
    sqlite3.SQLITE_CANTOPEN: "It must be a writable file; check its directory, owner and permissions.",
}


def _explanation(path: Path, doing: str, error: sqlite3.Error | OSError) -> str:
    where = f"Cannot {doing} the activity database {path}: {error}."
    if isinstance(error, OSError):
        return f"{where} Check that the directory exists, is yours and has room."
    code = getattr(error, "sqlite_errorcode", None)
    advice = _ADVICE.get(code & 0xFF) if isinstance(code, int) else None
    return f"{where} {advice or 'Nothing was changed; please report this.'}"
