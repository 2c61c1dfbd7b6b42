"""Read and write the team's database inside one transaction, whichever engine keeps it.

Statements are in the SQL that SQLite and PostgreSQL have in common, with `?` or `:name` for parameters; truth
values are `bool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.contracts.agents import Recorded
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.store.query import Dialect, Hold, Query, Row, Value, Values

T = TypeVar("T")

NUMBERS = 1_000
"""What a number of the store's sequence is multiplied by: an earlier version counted on within a transaction."""

CHANNEL = "artoo_arrivals"
"""The channel on which PostgreSQL tells other machines that something came in (`cluster.pg_listen`)."""

_NEXT: dict[Dialect, str] = {
    "sqlite": "UPDATE marks SET value = CAST(value + 1 AS TEXT) WHERE name = 'number' RETURNING value",
    "postgresql": f"SELECT nextval('numbers') * {NUMBERS} AS number",
}
_ARRIVED: dict[Dialect, str] = {
    "sqlite": "INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1",
    # Shards, because many machines count arrivals under one name at the same time.
    "postgresql": "INSERT INTO arrivals (name, shard, count) VALUES (?, pg_backend_pid() % 16, 1)"
    " ON CONFLICT (name, shard) DO UPDATE SET count = arrivals.count + 1",
}
_VERSION: dict[Dialect, str] = {
    "sqlite": "PRAGMA data_version",
    "postgresql": "SELECT CAST(sum(count) AS bigint) FROM arrivals",
}


def storable(text: str) -> str:
    """Return `text` as both engines keep it.

    Bytes of file names that were no text come along as lone surrogates, which UTF-8 cannot say; PostgreSQL has no
    character zero.
    """
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def made(kind: type[T], row: Row, **given: Any) -> T:
    """Make a `kind` (a contract or a dataclass) of the columns that are its fields; a time `at` is of `at_us`."""
    known, values = _fields(kind), dict[str, Any]()
    for column in row.keys():  # noqa: SIM118 - a row of SQLite gives its values otherwise
        name, value = column, row[column]
        if name not in known:
            name = column.removesuffix("_us")
            value = value if name == column or value is None else moment(value)
        if name in known:
            values[name] = value
    found: T = _adapter(kind).validate_python(values | given)
    return found


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _fields(kind: type[Any]) -> frozenset[str]:
    if issubclass(kind, BaseModel):
        return frozenset(kind.model_fields)
    return frozenset(field.name for field in fields(kind))


class Reading:
    """One consistent view. `now` is the wall clock; `steady_us` the clock by which things wait (µs)."""

    __slots__ = ("_query", "holder", "now", "steady_us")

    def __init__(self, query: Query, now: datetime, steady_us: int, holder: str) -> None:
        self._query = query
        self.now = now
        self.steady_us = steady_us
        self.holder = holder

    @property
    def now_us(self) -> int:
        """Return the wall clock (µs)."""
        return microseconds(self.now)

    def one(self, sql: str, values: Values = (), *, hold: Hold | None = None) -> Row | None:
        """Return the first row, or None. `hold`: for writers, what keeps others from changing it."""
        rows = self.all(sql, values, hold=hold)
        return rows[0] if rows else None

    def all(self, sql: str, values: Values = (), *, hold: Hold | None = None) -> Sequence[Row]:
        """Return every row; bound the question with LIMIT."""
        return self._query.all(self._held(sql, hold), values)

    def names(self, sql: str, values: Values = ()) -> tuple[str, ...]:
        """Return the texts in the first column of every row."""
        return tuple(str(next(iter(dict(row).values()))) for row in self.all(sql, values))

    def count(self, sql: str, values: Values = ()) -> int:
        """Return the whole number in the first column of the first row, 0 when there is none."""
        row = self.one(sql, values)
        found = None if row is None else next(iter(dict(row).values()))
        return 0 if found is None else int(found)

    def version(self) -> int:
        """Return a number that changes when another process has written something that a process may wait for."""
        return self.count(_VERSION[self._query.dialect])

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql


class Writing(Reading):
    """A write transaction: all of it or nothing. Keep it short: others wait.

    On SQLite it is the only one. On PostgreSQL others run next to it: a row that decides is read with `hold`, which
    gives it as it is when its turn has come; `alone` is for a condition that no row stands for.
    """

    __slots__ = ("_arrived", "_store")

    def __init__(self, query: Query, now: datetime, steady_us: int, holder: str) -> None:
        super().__init__(query, now, steady_us, holder)
        self._arrived: set[str] = set()
        self._store = ""

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute one statement; how many rows it changed."""
        return self._query.run(sql, values)

    def insert(self, table: str, *, over: Sequence[str] = (), once: bool = False, **values: Value) -> int:
        """Insert a row; how many were. A row with the same `over` is replaced; with `once`, the old row stays."""
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        if over:
            news = ", ".join(f"{name} = excluded.{name}" for name in values if name not in over)
            sql += f" ON CONFLICT ({', '.join(over)}) DO UPDATE SET {news}"
        elif once:
            sql += " ON CONFLICT DO NOTHING"
        return self.run(sql, tuple(map(_plain, values.values())))

    def change(self, table: str, row: str, *, key: str = "id", **values: Value) -> int:
        """Set columns of the row whose `key` is `row`; how many rows that were."""
        news = ", ".join(f"{name} = ?" for name in values)
        return self.run(f"UPDATE {table} SET {news} WHERE {key} = ?", (*map(_plain, values.values()), row))

    def mark(self, name: str, value: str) -> None:
        """Keep one text under a name; an empty one removes it."""
        if value:
            self.insert("marks", over=("name",), name=name, value=storable(value))
        else:
            self.run("DELETE FROM marks WHERE name = ?", (name,))

    def holding(self, sql: str, hold: Hold) -> str:
        """Return a query to stand inside another statement, as `one` and `all` would hold its rows."""
        return self._query.holding(sql, hold)

    def emit(self, role: Role, subject: str, payload: Contract) -> str:
        """Add a record for the stream, in the same transaction as the change; the name of the event."""
        self._store = self._store or marked(self, "store")
        event = f"{self._store}-{self.next_number()}"
        if isinstance(payload, Recorded):
            payload = payload.model_copy(update={"event": event})
        self.insert(
            "events",
            role=role,
            subject=subject,
            kind=payload.kind(),
            payload=payload.model_dump_json(),
            holder=self.holder,
            since_us=self.steady_us,
        )
        return event

    def arrived(self, name: str) -> None:
        """Note that something came in for `name` ("" for anybody), which wakes its waiters (`wake.py`)."""
        self._arrived.add(name)

    def alone(self, what: str) -> None:
        """Exclude other transactions that ask for `what`, from here on."""
        self._query.alone(what)

    def next_number(self) -> int:
        """Return a number larger than all earlier ones: the order of arrival and of events."""
        return self.count(_NEXT[self._query.dialect])

    def finish(self) -> None:
        """Count the arrivals and notify listeners."""
        # Last, and in the order of the names, so that no process waits long for these rows, or in a circle.
        dialect = self._query.dialect
        for name in sorted(self._arrived):
            self.run(_ARRIVED[dialect], (name,))
        if self._arrived and dialect == "postgresql":
            self.run("SELECT pg_notify(?, ?)", (CHANNEL, self.holder))

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql if hold is None else self._query.holding(sql, hold)


def marked(reading: Reading, name: str) -> str:
    """Return the text that is kept under a name, empty when there is none."""
    return "".join(reading.names("SELECT value FROM marks WHERE name = ?", (name,)))


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, Enum) else value
