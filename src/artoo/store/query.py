"""The interface of engine and query for SQLite and PostgreSQL, with rows and failure kinds.

    Engine.read(work)    work(query) on one consistent snapshot
    Engine.write(work)   work(query) in one transaction: all of it, or nothing when it raises

Statements use the SQL that both databases support, with `?` for parameters. Both have the functions `now_us()`, the
store's clock in microseconds since 1970, and `exact_sum(a, b)` for integers of any size, which are passed as text
and read with `int`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

T = TypeVar("T")

Value = str | int | float | bool | bytes | None
Values = Sequence[Value] | Mapping[str, Value]
Asked = tuple[str, Sequence[Values]]
"""A statement, and a list of parameter sets. It is executed once for each set."""

Hold = Literal["wait", "skip"]
"""Behaviour for a row locked by another transaction: wait for that transaction, or skip the row."""

Dialect = Literal["sqlite", "postgresql"]

Failure = Literal["away", "unanswered", "unready", "full", "stuck", "refused", "data", "other"]
"""`away`: the store cannot be reached. `unanswered`: the same, and it is unknown whether the commit succeeded.
`unready`: the store is not set up for this program. `full`: the disk is full. `stuck`: the operation failed this
time. `refused`: the role lacks the right. `data`: this change cannot be stored."""
Failed = Callable[[str, Failure], Exception]
"""Creates a package's own exception from a message and the kind of failure."""


class Row(Protocol):
    """One row, indexed by column name."""

    def __getitem__(self, name: str, /) -> Any: ...

    def keys(self) -> Any:
        """Return the column names."""
        ...


class Query(Protocol):
    """One transaction of an engine."""

    @property
    def dialect(self) -> Dialect:
        """Return the engine's SQL dialect, for the few statements that differ."""
        ...

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """Return every row. Bound the query with LIMIT."""
        ...

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute one statement, and return how many rows it changed."""
        ...

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """Execute every statement for each of its parameter sets, and return the rows. One network round trip."""
        ...

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Execute one statement without result rows for many parameter sets."""
        ...

    def holding(self, sql: str, hold: Hold) -> str:
        """Return the query so that its rows stay locked against changes until this transaction ends."""
        ...

    def alone(self, what: str) -> None:
        """Wait until no other transaction holds the lock named `what`, and take it for this transaction."""
        ...

    def keep_out(self, tables: str) -> None:
        """Lock these tables against all other writers until the transaction ends. Waits without a timeout."""
        ...

    def first_time(self, receipt: UUID, forget: Sequence[UUID]) -> bool:
        """Store a receipt in this transaction and delete others. False: it was committed before."""
        ...

    def size(self, prefix: str) -> int:
        """Return the total size in bytes of all tables whose names begin with `prefix`."""
        ...

    def problems(self) -> list[str]:
        """Return defects of the database file, if there is one; a limited number of them."""
        ...


class Engine(Protocol):
    """An open database. Blocking, and usable from any thread. It raises the exceptions that `Failed` creates.

    `place` names the database for people.
    """

    @property
    def place(self) -> str:
        """Return the name of the database for people."""
        ...

    def read(self, work: Callable[[Query], T]) -> T:
        """Run `work` on one consistent snapshot."""
        ...

    def write(self, work: Callable[[Query], T]) -> T:
        """Run `work` in a transaction, durable when this returns. After a conflict, `work` may run again."""
        ...

    def forget(self, receipts: Sequence[UUID]) -> None:
        """Delete receipts of writes whose outcome is known, and old receipts of killed processes. Never raises."""
        ...

    def close(self) -> None:
        """Close all connections. Idempotent."""
        ...


def first(rows: Sequence[Row]) -> Row | None:
    """Return the first row, or None."""
    return rows[0] if rows else None
