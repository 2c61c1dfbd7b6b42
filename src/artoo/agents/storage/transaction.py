"""Read and write rows in one transaction, with the SQL differences between SQLite and PostgreSQL.

Statements use only the SQL that SQLite and PostgreSQL have in common. Their parameters are `?` or `:name`. A
boolean is returned as `bool`.
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
"""Factor for the values of the store's sequence. An earlier version used the numbers in between."""

CHANNEL = "artoo_arrivals"
"""The channel on which PostgreSQL notifies other machines of arrivals (`cluster.pg_listen`)."""

_NEXT: dict[Dialect, str] = {
    "sqlite": "UPDATE marks SET value = CAST(value + 1 AS TEXT) WHERE name = 'number' RETURNING value",
    "postgresql": f"SELECT nextval('numbers') * {NUMBERS} AS number",
}
_ARRIVED: dict[Dialect, str] = {
    "sqlite": "INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1",
    # Each name has 16 rows, because many machines count arrivals under the same name at the same time.
    "postgresql": "INSERT INTO arrivals (name, shard, count) VALUES (?, pg_backend_pid() % 16, 1)"
    " ON CONFLICT (name, shard) DO UPDATE SET count = arrivals.count + 1",
}
_VERSION: dict[Dialect, str] = {
    "sqlite": "PRAGMA data_version",
    "postgresql": "SELECT CAST(sum(count) AS bigint) FROM arrivals",
}


def storable(text: str) -> str:
    """Return `text` without characters that one of the two engines cannot store.

    File names with invalid bytes contain lone surrogates, which UTF-8 cannot encode. PostgreSQL does not allow NUL.
    Both kinds of characters are replaced.
    """
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def made(kind: type[T], row: Row, **given: Any) -> T:
    """Build an object of `kind` (a contract or a dataclass) from the columns that have the names of its fields. A
    field `at` is read from the column `at_us`."""
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
    """A consistent snapshot of the database. `now` is the time of the wall clock. `steady_us` is the time of the
    clock for leases and waits (µs)."""

    __slots__ = ("_query", "holder", "now", "steady_us")

    def __init__(self, query: Query, now: datetime, steady_us: int, holder: str) -> None:
        self._query = query
        self.now = now
        self.steady_us = steady_us
        self.holder = holder

    @property
    def now_us(self) -> int:
        """Return the time of the wall clock (µs)."""
        return microseconds(self.now)

    def one(self, sql: str, values: Values = (), *, hold: Hold | None = None) -> Row | None:
        """Return the first row, or None if there is none. `hold`: for a writer, how the row is locked against
        changes."""
        rows = self.all(sql, values, hold=hold)
        return rows[0] if rows else None

    def all(self, sql: str, values: Values = (), *, hold: Hold | None = None) -> Sequence[Row]:
        """Return every row. The query should be limited by LIMIT."""
        return self._query.all(self._held(sql, hold), values)

    def names(self, sql: str, values: Values = ()) -> tuple[str, ...]:
        """Return the first column of every row as a text."""
        return tuple(str(next(iter(dict(row).values()))) for row in self.all(sql, values))

    def count(self, sql: str, values: Values = ()) -> int:
        """Return the integer in the first column of the first row. Return 0 if there is no row."""
        row = self.one(sql, values)
        found = None if row is None else next(iter(dict(row).values()))
        return 0 if found is None else int(found)

    def version(self) -> int:
        """Return a number that changes when another process has written data for which an agent may wait."""
        return self.count(_VERSION[self._query.dialect])

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql


class Writing(Reading):
    """A write transaction, which is committed completely or not at all. It should be short, because others wait for
    it.

    On SQLite it is the only writer. On PostgreSQL, other transactions run at the same time. If a decision depends
    on rows, they must therefore be read with `hold`, which locks them and returns their current state. If a
    condition does not depend on a row, use `alone`.
    """

    __slots__ = ("_arrived", "_store")

    def __init__(self, query: Query, now: datetime, steady_us: int, holder: str) -> None:
        super().__init__(query, now, steady_us, holder)
        self._arrived: set[str] = set()
        self._store = ""

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute one statement. Return the number of rows that it changed."""
        return self._query.run(sql, values)

    def insert(self, table: str, *, over: Sequence[str] = (), once: bool = False, **values: Value) -> int:
        """Insert a row. Return the number of rows that were inserted. A row with equal values in the columns `over`
        is replaced. With `once`, an existing row is kept instead."""
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        if over:
            news = ", ".join(f"{name} = excluded.{name}" for name in values if name not in over)
            sql += f" ON CONFLICT ({', '.join(over)}) DO UPDATE SET {news}"
        elif once:
            sql += " ON CONFLICT DO NOTHING"
        return self.run(sql, tuple(map(_plain, values.values())))

    def change(self, table: str, row: str, *, key: str = "id", **values: Value) -> int:
        """Set columns of the rows whose column `key` equals `row`. Return the number of rows that were changed."""
        news = ", ".join(f"{name} = ?" for name in values)
        return self.run(f"UPDATE {table} SET {news} WHERE {key} = ?", (*map(_plain, values.values()), row))

    def mark(self, name: str, value: str) -> None:
        """Store a text under a name. An empty text removes the entry."""
        if value:
            self.insert("marks", over=("name",), name=name, value=storable(value))
        else:
            self.run("DELETE FROM marks WHERE name = ?", (name,))

    def holding(self, sql: str, hold: Hold) -> str:
        """Return the query with its row locks, as `one` and `all` use it, so that it can be part of another
        statement."""
        return self._query.holding(sql, hold)

    def emit(self, role: Role, subject: str, payload: Contract) -> str:
        """Add a record for the stream in the same transaction as the change. Returns the id of the event."""
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
        """Record an arrival for `name` ("" for any agent), which wakes the agents that wait for it (`wake.py`)."""
        self._arrived.add(name)

    def alone(self, what: str) -> None:
        """Exclude other transactions that call `alone` with the same name, until this transaction ends."""
        self._query.alone(what)

    def next_number(self) -> int:
        """Return a number larger than all earlier ones, for the order of arrivals and events."""
        return self.count(_NEXT[self._query.dialect])

    def finish(self) -> None:
        """Write the counts of arrivals, and notify the listeners."""
        # This is done last and in the order of names, so that these rows are locked only briefly and deadlocks are
        # impossible.
        dialect = self._query.dialect
        for name in sorted(self._arrived):
            self.run(_ARRIVED[dialect], (name,))
        if self._arrived and dialect == "postgresql":
            self.run("SELECT pg_notify(?, ?)", (CHANNEL, self.holder))

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql if hold is None else self._query.holding(sql, hold)


def marked(reading: Reading, name: str) -> str:
    """Return the text stored under a name. Return "" if there is none."""
    return "".join(reading.names("SELECT value FROM marks WHERE name = ?", (name,)))


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, Enum) else value
