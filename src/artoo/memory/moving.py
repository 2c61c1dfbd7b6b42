"""Move memory from a home into a store, and back: every row, in one transaction, compared by hash.

Sums are not moved: they follow from the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.memory import codec, exchange, tables
from artoo.memory.engines import engine_at, has_memory
from artoo.store.address import StoreAddress
from artoo.store.parts import Counted, Counting, Record
from artoo.store.query import Engine, Query

_TOGETHER = 1_000
_TABLES = {
    "worked": ("memory_worked", ("intent", "space", "entity")),
    "marks": ("memory_marks", ("name", "value")),
    "reports": ("memory_reports", ("id", "report")),
    "proposals": ("memory_proposals", ("id", "status", "proposal")),
}


class Memory:
    """The implementation of `store.parts.Part` for the memory in `directory`."""

    name = "memory"

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def in_home(self) -> tuple[Counted, ...]:
        """See Part."""
        return _counted_in(self._directory) if has_memory(self._directory) else ()

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        return _counted_in(address)

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        return _moved(self._directory, address, "The store") if self.in_home() else ()

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """See Part."""
        return _moved(address, self._directory, "This home") if self.in_store(address) else ()


def _counted_in(place: Path | StoreAddress) -> tuple[Counted, ...]:
    engine = engine_at(place)
    try:
        counted = engine.read(_counted)
    finally:
        engine.close()
    return counted if any(one.rows for one in counted) else ()


def _moved(source: Path | StoreAddress, target: Path | StoreAddress, named: str) -> tuple[Counted, ...]:
    one, other = engine_at(source), engine_at(target)
    try:
        return one.read(lambda reading: _copied(reading, other, named))
    finally:
        one.close()
        other.close()


def _copied(source: Query, target: Engine, named: str) -> tuple[Counted, ...]:
    before = _counted(source)

    def work(query: Query) -> tuple[Counted, ...]:
        if any(one.rows for one in _counted(query)):
            raise ConfigurationError(
                f"{named} has memory already; move into an empty one, or `artoo memory import`."
            )
        query.keep_out("memory_megrams, memory_sums")
        records = _records(source, "megrams")
        while batch := [codec.decode(str(record[1])) for record in islice(records, _TOGETHER)]:
            tables.add(query, batch)
        query.run("DELETE FROM memory_worked")
        for name, (table, columns) in _TABLES.items():
            places = ", ".join("?" * len(columns))
            query.many(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", list(_records(source, name))
            )
        return _same(before, _counted(query))

    return target.write(work)


def _same(before: tuple[Counted, ...], after: tuple[Counted, ...]) -> tuple[Counted, ...]:
    for one, other in zip(before, after, strict=True):
        if one != other:
            raise MemoryStoreError(
                f"{one.table}: {one.rows} rows were read, {other.rows} written, or they differ; nothing was moved."
            )
    return after


def _counted(query: Query) -> tuple[Counted, ...]:
    found: list[Counted] = []
    for name in ("megrams", *_TABLES):
        counting = Counting(name)
        counting.add(_records(query, name))
        found.append(counting.counted())
    return tuple(found)


def _records(query: Query, name: str) -> Iterator[Record]:
    if name != "megrams":
        table, columns = _TABLES[name]
        for row in query.all(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {', '.join(columns)}"):
            yield tuple(row[column] for column in columns)
        return
    after = ""
    while megrams := exchange.every(query, after):
        yield from ((each.id, codec.encode_whole(each).decode()) for each in megrams)
        after = megrams[-1].id
