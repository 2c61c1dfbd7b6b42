"""Import the memory of an earlier version from an LMDB file (`data.mdb`), once.

The import is made when the home is first opened.

The file is kept under the name `data.mdb.old`. The user may delete it. The library that reads LMDB is an optional
extra, which only homes with such a file need.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import MemoryStoreError
from artoo.memory import codec, tables
from artoo.memory.signal import microseconds
from artoo.store.query import Engine, Query, Value

if TYPE_CHECKING:
    import lmdb

    from artoo.contracts.memory import Megram

DATA = "data.mdb"
_MARK = b"lmdb"
_TOGETHER = 2_048
_IN_USE = "presence"
"""The lock file of the earlier version. Each process of that version held a lock on it while it had the store
open."""
_COPIED = {
    b"d|": "INSERT INTO memory_marks (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
    b"h|": "INSERT INTO memory_reports (id, report) VALUES (?, ?) ON CONFLICT DO NOTHING",
    b"p|": "INSERT INTO memory_proposals (id, status, proposal) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    b"i|": "INSERT INTO memory_worked (intent, space, entity) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    b"q|": "INSERT INTO memory_damaged (id, record, found_us) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
}
_OWN = (b"cursor:", b"format")
"""Marks that store the position of the Dreamer in the LMDB file. They are not copied."""

Items = Iterator[tuple[bytes, bytes]]


def take_over(directory: Path, engine: Engine) -> None:
    """Copy everything in one transaction, and rename the file. Raises MemoryStoreError that says what to do."""
    if importlib.util.find_spec("lmdb") is None:
        raise MemoryStoreError(
            f"The memory in {directory} was kept by an earlier version of artoo, in a file that takes an extra to"
            " read. Take it over once: pip install 'artoo[lmdb]', then `artoo memory`. Or begin anew:"
            f" mv {directory / DATA} {directory / DATA}.old"
        )
    descriptor = os.open(directory / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # another process may have imported the file meanwhile
        if (directory / DATA).exists():
            engine.write(lambda query: _copied(directory, query))
            (directory / DATA).rename(directory / f"{DATA}.old")
            for name in ("lock.mdb", "seal", _IN_USE, "dreaming"):
                (directory / name).unlink(missing_ok=True)
    except BlockingIOError as error:
        raise MemoryStoreError(
            f"An artoo of an earlier version uses the memory in {directory}, or another one takes it over just now."
            " End it, and try again."
        ) from error
    finally:
        os.close(descriptor)


def _copied(directory: Path, query: Query) -> None:
    import lmdb

    found = (directory / DATA).stat()
    file = f"{found.st_ino} {found.st_mtime_ns}"
    if any(row["value"] == file for row in query.all("SELECT value FROM memory_marks WHERE name = ?", (_MARK,))):
        # An earlier import was interrupted after it had copied this file and before it renamed it.
        return
    try:
        with (
            lmdb.Environment(os.fsencode(directory), readonly=True, lock=False, max_readers=1) as environment,
            environment.begin() as transaction,
        ):
            _megrams(query, transaction)
            for prefix, statement in _COPIED.items():
                rows = [_row(prefix, key, value) for key, value in _under(transaction, prefix)]
                query.many(statement, rows)
    except lmdb.Error as error:
        raise MemoryStoreError(
            f"The memory store {directory / DATA} is damaged: {error}. Move it away (a new one is made), or put a"
            " copy of it back."
        ) from error
    query.run(tables.MARK, (_MARK, file))


def _megrams(query: Query, transaction: lmdb.Transaction[bytes]) -> None:
    found = _under(transaction, b"m|")
    while batch := list(islice(found, _TOGETHER)):
        megrams: list[Megram] = []
        for key, value in batch:
            try:
                megram = codec.decode(value)
            except codec.RecordDamaged:
                query.run(_COPIED[b"q|"], (key.decode(), value.decode(errors="replace")))
                continue
            recalled = transaction.get(b"r|" + key)
            at = microseconds(datetime.fromisoformat(recalled.decode())) if recalled else None
            megrams.append(codec.with_recall(megram, at))
        tables.add(query, megrams)


def _row(prefix: bytes, key: bytes, value: bytes) -> tuple[Value, ...]:
    match prefix:
        case b"d|":
            return key, value.decode()
        case b"i|":
            return tuple(key.split(b"|", 2))
        case b"p|":
            return key.decode(), _status(value), value.decode()
        case _:
            return key.decode(), value.decode(errors="replace")


def _status(proposal: bytes) -> str:
    import orjson

    return str(orjson.loads(proposal).get("status", "open"))


def _under(transaction: lmdb.Transaction[bytes], prefix: bytes) -> Items:
    """Yield the entries whose keys begin with a prefix, each as (rest of the key, value). Marks about the LMDB file
    are left out."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(prefix):
            return
        for key, value in cursor:
            if not key.startswith(prefix):
                return
            if prefix != b"d|" or not key[2:].startswith(_OWN):
                yield key[2:], value
