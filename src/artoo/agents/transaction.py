"""What may be done with the activity database inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from artoo.agents import steady
from artoo.contracts.agents import Recorded
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role

Value = str | int | float | None
Parameters = Sequence[Value] | Mapping[str, Value]
Row = sqlite3.Row


def storable(text: str) -> str:
    """`text` without what UTF-8 cannot say: bytes of file names that were no text come along as lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Reading:
    """One consistent view. `now` is the wall clock; `steady_us` the clock by which things wait (µs)."""

    __slots__ = ("_connection", "holder", "now", "steady_us")

    def __init__(self, connection: sqlite3.Connection, now: datetime, steady_us: int, holder: str) -> None:
        self._connection = connection
        self.now = now
        self.steady_us = steady_us
        self.holder = holder

    @property
    def now_us(self) -> int:
        """The wall clock (µs)."""
        return steady.microseconds(self.now)

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row; bound what you ask for with LIMIT."""
        return self._connection.execute(sql, parameters).fetchall()

    def count(self, sql: str, parameters: Parameters = ()) -> int:
        """The whole number in the first column of the first row, 0 when there is none."""
        row = self.one(sql, parameters)
        return 0 if row is None or row[0] is None else int(row[0])


class Writing(Reading):
    """A write transaction: all of it or nothing. Keep it short: every other process waits."""

    __slots__ = ()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Executes one statement; how many rows it changed."""
        return self._connection.execute(sql, parameters).rowcount

    def emit(self, role: Role, subject: str, payload: Contract) -> str:
        """Lays a record down for the stream, in the same transaction as what it records; the name of the event."""
        event = f"{self.store()}-{self.next_number()}"
        if isinstance(payload, Recorded):
            payload = payload.model_copy(update={"event": event})
        self.run(
            "INSERT INTO events (role, subject, kind, payload, holder, since_us) VALUES (?, ?, ?, ?, ?, ?)",
            (role.value, subject, payload.kind(), payload.model_dump_json(), self.holder, self.steady_us),
        )
        return event

    def arrived(self, name: str) -> None:
        """Notes that something came in for `name` ("" for anybody), which wakes who waits for it (`wake.py`)."""
        self.run("INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,))

    def store(self) -> str:
        """The name of this database, which no other has."""
        row = self.one("SELECT value FROM marks WHERE name = 'store'")
        return "" if row is None else str(row[0])

    def next_number(self) -> int:
        """A number larger than all that were given before: the order of arrival and of events."""
        self.run("UPDATE marks SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'number'")
        return self.count("SELECT CAST(value AS INTEGER) FROM marks WHERE name = 'number'")
