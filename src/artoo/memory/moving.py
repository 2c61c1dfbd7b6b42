"""Memory on its way from a home into a store, and back: every record, in one transaction, compared by hash.

Sums are not moved: they follow from the records. Nor are the Dreamer's cursors, which are places in one engine's
order; the next pass begins at the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.memory import codec, keys, reading
from artoo.memory.environment import Environment, Transaction, open_environment
from artoo.memory.ledger import Ledger
from artoo.memory.postgres import rows
from artoo.memory.postgres.sink import append
from artoo.memory.seal import DATA
from artoo.store.address import StoreAddress
from artoo.store.opened import opened
from artoo.store.parts import Counted, Counting, Record
from artoo.store.pooled import without_limits

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

_BATCH = 1_000
_OWN = (b"cursor:", b"format")
"""Marks of one engine."""

Tables = dict[str, Iterator[Record]]

_READ = {
    "megrams": b"SELECT id, record, recalled_us FROM memory_megrams ORDER BY id",
    "worked": b"SELECT intent, space, entity FROM memory_worked ORDER BY intent, space, entity",
    "marks": b"SELECT name, value FROM memory_marks ORDER BY name",
    "reports": b"SELECT id, report FROM memory_reports ORDER BY id",
    "proposals": b"SELECT id, proposal FROM memory_proposals ORDER BY id",
}
_WRITE = {
    "worked": b"INSERT INTO memory_worked (intent, space, entity) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
    "marks": b"INSERT INTO memory_marks (name, value) VALUES (%s, %s)",
    "reports": b"INSERT INTO memory_reports (id, report) VALUES (%s, %s)",
}
_PROPOSAL = b"INSERT INTO memory_proposals (id, status, proposal) VALUES (%s, %s, %s)"


class Memory:
    """Implements `store.parts.Part` for the memory in `directory`."""

    name = "memory"

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def in_home(self) -> tuple[Counted, ...]:
        """See Part."""
        if not (self._directory / DATA).exists():
            return ()
        environment = open_environment(self._directory)
        try:
            return environment.read(lambda transaction: _some(_counted(_of_home(transaction))))
        finally:
            environment.close()

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        return _in_store(address, "read", lambda connection: _some(_counted(_of_store(connection))))

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        before = self.in_home()
        if not before:
            return ()
        environment = open_environment(self._directory)
        try:
            return _in_store(address, "write to", lambda connection: _moved_in(connection, environment, before))
        finally:
            environment.close()

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        if not self.in_store(address):
            return ()
        environment = open_environment(self._directory)
        try:
            return _in_store(address, "read", lambda connection: _moved_out(connection, environment))
        finally:
            environment.close()


def _in_store(
    address: StoreAddress, doing: str, work: Callable[[Connection], tuple[Counted, ...]]
) -> tuple[Counted, ...]:
    with opened(address, doing, MemoryStoreError) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with without_limits(connection):
            return work(connection)


def _moved_in(connection: Connection, environment: Environment, before: tuple[Counted, ...]) -> tuple[Counted, ...]:
    if any(one.rows for one in _counted(_of_store(connection))):
        raise ConfigurationError("The store has memory already; move into an empty one, or `artoo memory import`.")

    def copied(transaction: Transaction) -> None:
        tables = _of_home(transaction)
        while batch := [_megram(record) for record in islice(tables["megrams"], _BATCH)]:
            append(connection, batch)
        for name, query in _WRITE.items():
            for record in tables[name]:
                connection.execute(query, record)
        for proposal_id, text in tables["proposals"]:
            status = json.loads(str(text)).get("status", "open")  # another version's moves as it is
            connection.execute(_PROPOSAL, (proposal_id, status, text))

    environment.read(copied)
    return _same(before, _counted(_of_store(connection)))


def _moved_out(connection: Connection, environment: Environment) -> tuple[Counted, ...]:
    before = _counted(_of_store(connection))

    def copied(transaction: Transaction) -> tuple[Counted, ...]:
        if any(one.rows for one in _counted(_of_home(transaction))):
            raise ConfigurationError(
                "This home has memory already; move into an empty one, or `artoo memory import`."
            )
        tables, ledger = _of_store(connection), Ledger(transaction)
        for record in tables["megrams"]:
            ledger.add(_megram(record))
        ledger.finish()
        for intent, space, entity in tables["worked"]:
            transaction.put(b"i|" + b"|".join((_bytes(intent), _bytes(space), _bytes(entity))), b"")
        for name, value in tables["marks"]:
            transaction.put(b"d|" + _bytes(name), str(value).encode())
        for report_id, text in tables["reports"]:
            transaction.put(keys.report(str(report_id)), str(text).encode())
        for proposal_id, text in tables["proposals"]:
            transaction.put(keys.proposal(str(proposal_id)), str(text).encode())
        return _same(before, _counted(_of_home(transaction)))

    return environment.write(copied)


def _some(counted: tuple[Counted, ...]) -> tuple[Counted, ...]:
    """What there is; empty where there is nothing at all."""
    return counted if any(one.rows for one in counted) else ()


def _same(before: tuple[Counted, ...], after: tuple[Counted, ...]) -> tuple[Counted, ...]:
    for one, other in zip(before, after, strict=True):
        if one != other:
            raise MemoryStoreError(
                f"{one.table}: {one.rows} rows were read, {other.rows} written, or they differ; nothing was moved."
            )
    return after


def _counted(tables: Tables) -> tuple[Counted, ...]:
    found: list[Counted] = []
    for name, records in tables.items():
        counting = Counting(name)
        counting.add(records)
        found.append(counting.counted())
    return tuple(found)


def _of_home(transaction: Transaction) -> Tables:
    return {
        "megrams": _megrams_of_home(transaction),
        "worked": (tuple(key[2:].split(b"|")) for key in reading.keys_under(transaction, b"i|")),
        "marks": _marks((key[2:], value.decode()) for key, value in reading.items_under(transaction, b"d|")),
        "reports": _texts(transaction, b"h|"),
        "proposals": _texts(transaction, b"p|"),
    }


def _megrams_of_home(transaction: Transaction) -> Iterator[Record]:
    for key, value in reading.items_under(transaction, b"m|"):
        megram_id = key[2:].decode()
        found = codec.with_recall(codec.decode(value), transaction.get(keys.recalled(megram_id)))
        yield megram_id, codec.encode_whole(found).decode()


def _texts(transaction: Transaction, prefix: bytes) -> Iterator[Record]:
    return ((key[2:].decode(), value.decode()) for key, value in reading.items_under(transaction, prefix))


def _of_store(connection: Connection) -> Tables:
    return {
        name: _megrams_of_store(connection) if name == "megrams" else _rows(connection, name, query)
        for name, query in _READ.items()
    }


def _megrams_of_store(connection: Connection) -> Iterator[Record]:
    with connection.cursor(name="moving") as cursor:
        cursor.itersize = _BATCH
        for row in cursor.execute(_READ["megrams"]):
            yield str(row["id"]), codec.encode_whole(rows.megram(row)).decode()


def _rows(connection: Connection, name: str, query: bytes) -> Iterator[Record]:
    found: Iterator[Record] = (tuple(row.values()) for row in connection.execute(query))
    return _marks(found) if name == "marks" else found


def _marks(found: Iterable[Record]) -> Iterator[Record]:
    return (record for record in found if not _bytes(record[0]).startswith(_OWN))


def _megram(record: Record) -> Megram:
    return codec.decode(str(record[1]).encode())


def _bytes(cell: object) -> bytes:
    if not isinstance(cell, bytes):
        raise MemoryStoreError(f"a key is {type(cell).__name__}, not bytes")
    return cell
