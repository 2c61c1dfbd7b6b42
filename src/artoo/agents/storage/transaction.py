"""What may be done with the team's database inside one transaction, whichever engine keeps it.

Statements are in the SQL that SQLite and PostgreSQL have in common, with `?` or `:name` for parameters; truth
values are `bool`. What the two say in different ways is in `Engine`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter

from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.contracts.agents import Recorded
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.store.query import Row

T = TypeVar("T")

Value = str | int | float | bool | None
Parameters = Sequence[Value] | Mapping[str, Value]

Hold = Literal["wait", "skip"]
"""What a writer does about a row that another one holds: waits until that ends, or passes it over."""


class Engine(Protocol):
    """One transaction of one engine."""

    def all(self, sql: str, parameters: Parameters, /) -> Sequence[Row]:
        """Execute one statement; the rows that it gives."""
        ...

    def run(self, sql: str, parameters: Parameters, /) -> int:
        """Execute one statement; how many rows it changed."""
        ...

    def put(self, sql: str, parameters: Parameters, /) -> object:
        """Execute one statement, at the latest before the next one that gives something. Errors come then."""
        ...

    def holding(self, sql: str, hold: Hold) -> str:
        """Return a query whose rows nobody else changes before this transaction ends."""
        ...

    def store(self) -> str:
        """Return the name of this database, which no other has."""
        ...

    def next_number(self) -> int:
        """Return a number larger than all that were given before to whom this transaction knows of."""
        ...

    def arrived(self, name: str) -> None:
        """Note that something came in for `name`."""
        ...

    def alone(self, what: str) -> None:
        """Wait until no other transaction that asked for `what` is under way."""
        ...


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

    __slots__ = ("_engine", "holder", "now", "steady_us")

    def __init__(self, engine: Engine, now: datetime, steady_us: int, holder: str) -> None:
        self._engine = engine
        self.now = now
        self.steady_us = steady_us
        self.holder = holder

    @property
    def now_us(self) -> int:
        """The wall clock (µs)."""
        return microseconds(self.now)

    def one(self, sql: str, parameters: Parameters = (), *, hold: Hold | None = None) -> Row | None:
        """Return the first row, or None. `hold`: for writers, what keeps others from changing it."""
        rows = self.all(sql, parameters, hold=hold)
        return rows[0] if rows else None

    def all(self, sql: str, parameters: Parameters = (), *, hold: Hold | None = None) -> Sequence[Row]:
        """Return every row; bound what you ask for with LIMIT."""
        return self._engine.all(self._held(sql, hold), parameters)

    def names(self, sql: str, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return the texts in the first column of every row."""
        return tuple(str(next(iter(dict(row).values()))) for row in self.all(sql, parameters))

    def count(self, sql: str, parameters: Parameters = ()) -> int:
        """Return the whole number in the first column of the first row, 0 when there is none."""
        row = self.one(sql, parameters)
        found = None if row is None else next(iter(dict(row).values()))
        return 0 if found is None else int(found)

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql


class Writing(Reading):
    """A write transaction: all of it or nothing. Keep it short: others wait.

    On SQLite it is the only one. On PostgreSQL others run beside it: a row that decides is read with `hold`, which
    gives it as it is when its turn has come; `alone` is for what no row stands for.
    """

    __slots__ = ()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Execute one statement; how many rows it changed."""
        return self._engine.run(sql, parameters)

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

    def put(self, sql: str, parameters: Parameters = ()) -> None:
        """Execute one statement of which nothing has to be known: a store is not waited for then."""
        self._engine.put(sql, parameters)

    def holding(self, sql: str, hold: Hold) -> str:
        """Return a query to stand inside another statement, as `one` and `all` would hold its rows."""
        return self._engine.holding(sql, hold)

    def emit(self, role: Role, subject: str, payload: Contract) -> str:
        """Lay a record down for the stream, in the same transaction as what it records; the name of the event."""
        event = f"{self._engine.store()}-{self.next_number()}"
        if isinstance(payload, Recorded):
            payload = payload.model_copy(update={"event": event})
        self.put(
            "INSERT INTO events (role, subject, kind, payload, holder, since_us) VALUES (?, ?, ?, ?, ?, ?)",
            (role.value, subject, payload.kind(), payload.model_dump_json(), self.holder, self.steady_us),
        )
        return event

    def arrived(self, name: str) -> None:
        """Note that something came in for `name` ("" for anybody), which wakes who waits for it (`wake.py`)."""
        self._engine.arrived(name)

    def alone(self, what: str) -> None:
        """From here on no other transaction that asked for `what` runs beside this one."""
        self._engine.alone(what)

    def next_number(self) -> int:
        """Return a number larger than all that were given before: the order of arrival and of events."""
        return self._engine.next_number()

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql if hold is None else self._engine.holding(sql, hold)


def marked(reading: Reading, name: str) -> str:
    """Return the text that is kept under a name, empty when there is none."""
    return "".join(reading.names("SELECT value FROM marks WHERE name = ?", (name,)))


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, Enum) else value
