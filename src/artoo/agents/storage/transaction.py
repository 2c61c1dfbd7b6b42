"""What may be done with the team's books inside one transaction, whichever engine keeps them.

Statements are in the SQL that SQLite and PostgreSQL have in common, with `?` or `:name` for parameters; truth
values are `bool`. What the two say in different ways is in `Engine`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from artoo.agents.storage import monotonic_clock as steady
from artoo.contracts.agents import Recorded
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role

Value = str | int | float | bool | None
Parameters = Sequence[Value] | Mapping[str, Value]

Hold = Literal["wait", "skip"]
"""What a writer does about a row that another one holds: waits until that ends, or passes it over."""


class Row(Protocol):
    """One row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...


class Result(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """Rows that it changed."""
        ...

    def fetchone(self) -> Any | None:
        """The next row."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...


class Engine(Protocol):
    """One transaction of one engine."""

    @property
    def store(self) -> str:
        """The name of these books, which no other have."""
        ...

    def execute(self, sql: str, parameters: Parameters) -> Result:
        """Executes one statement."""
        ...

    def put(self, sql: str, parameters: Parameters) -> None:
        """Executes one statement, at the latest before the next one that gives something. Errors come then."""
        ...

    def holding(self, sql: str, hold: Hold) -> str:
        """A query whose rows nobody else changes before this transaction ends."""
        ...

    def first(self, row: Any) -> Any:
        """The first column."""
        ...

    def next_number(self) -> int:
        """A number larger than all that were given before to whom this transaction knows of."""
        ...

    def arrived(self, name: str) -> None:
        """Notes that something came in for `name`."""
        ...

    def alone(self, what: str) -> None:
        """Waits until no other transaction that asked for `what` is under way."""
        ...


def storable(text: str) -> str:
    """`text` as both engines keep it.

    Bytes of file names that were no text come along as lone surrogates, which UTF-8 cannot say; PostgreSQL has no
    character zero.
    """
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


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
        return steady.microseconds(self.now)

    def one(self, sql: str, parameters: Parameters = (), *, hold: Hold | None = None) -> Row | None:
        """The first row, or None. `hold`: for writers, what keeps others from changing it; readers hold nothing."""
        row: Row | None = self._engine.execute(self._held(sql, hold), parameters).fetchone()
        return row

    def all(self, sql: str, parameters: Parameters = (), *, hold: Hold | None = None) -> list[Row]:
        """Every row; bound what you ask for with LIMIT."""
        return self._engine.execute(self._held(sql, hold), parameters).fetchall()

    def count(self, sql: str, parameters: Parameters = ()) -> int:
        """The whole number in the first column of the first row, 0 when there is none."""
        row = self.one(sql, parameters)
        found = None if row is None else self._engine.first(row)
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
        """Executes one statement; how many rows it changed."""
        return self._engine.execute(sql, parameters).rowcount

    def put(self, sql: str, parameters: Parameters = ()) -> None:
        """Executes one statement of which nothing has to be known: a store is not waited for then."""
        self._engine.put(sql, parameters)

    def holding(self, sql: str, hold: Hold) -> str:
        """A query to stand inside another statement, as `one` and `all` would hold its rows."""
        return self._engine.holding(sql, hold)

    def emit(self, role: Role, subject: str, payload: Contract) -> str:
        """Lays a record down for the stream, in the same transaction as what it records; the name of the event."""
        event = f"{self._engine.store}-{self.next_number()}"
        if isinstance(payload, Recorded):
            payload = payload.model_copy(update={"event": event})
        self.put(
            "INSERT INTO events (role, subject, kind, payload, holder, since_us) VALUES (?, ?, ?, ?, ?, ?)",
            (role.value, subject, payload.kind(), payload.model_dump_json(), self.holder, self.steady_us),
        )
        return event

    def arrived(self, name: str) -> None:
        """Notes that something came in for `name` ("" for anybody), which wakes who waits for it (`wake.py`)."""
        self._engine.arrived(name)

    def alone(self, what: str) -> None:
        """From here on no other transaction that asked for `what` runs beside this one."""
        self._engine.alone(what)

    def next_number(self) -> int:
        """A number larger than all that were given before: the order of arrival and of events."""
        return self._engine.next_number()

    def _held(self, sql: str, hold: Hold | None) -> str:
        return sql if hold is None else self._engine.holding(sql, hold)
