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
"""What to do with a row that another transaction has locked: wait for that transaction, or skip the row."""

Dialect = Literal["sqlite", "postgresql"]

Failure = Literal["away", "unanswered", "unready", "full", "stuck", "refused", "data", "other"]
"""The kinds of failure. `away` means that the store cannot be reached. `unanswered` means the same, and that it is
unknown whether the commit succeeded. `unready` means that the store is not set up for this program. `full` means
that the disk is full. `stuck` means that the operation failed this time. `refused` means that the role lacks the
right. `data` means that this change cannot be stored."""
Failed = Callable[[str, Failure], Exception]
"""A function that creates a package's own exception from a message and the kind of failure."""


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
        """Return the SQL dialect of the engine. It is needed for the few statements that differ."""
        ...

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """Return every row. The number of rows should be bounded with LIMIT."""
        ...

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute one statement, and return the number of rows that it changed."""
        ...

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """Execute every statement once for each of its parameter sets, and return the rows. This takes one network
        round trip."""
        ...

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Execute one statement, which returns no rows, for many parameter sets."""
        ...

    def holding(self, sql: str, hold: Hold) -> str:
        """Return the query in a form that locks its rows against changes until this transaction ends."""
        ...

    def alone(self, what: str) -> None:
        """Wait until no other transaction holds the lock with the name `what`, and take this lock until the
        transaction ends."""
        ...

    def keep_out(self, tables: str) -> None:
        """Lock these tables against all other writers until the transaction ends. This method waits without a
        timeout."""
        ...

    def first_time(self, receipt: UUID, forget: Sequence[UUID]) -> bool:
        """Store a receipt in this transaction, and delete the receipts in `forget`. Return False if the receipt
        exists already, because the transaction was committed before."""
        ...

    def size(self, prefix: str) -> int:
        """Return the total size in bytes of all tables whose names begin with `prefix`."""
        ...

    def problems(self) -> list[str]:
        """Return defects of the database file if there is one. Their number is limited."""
        ...


class Engine(Protocol):
    """An open database. Its methods block and may be called from any thread. It raises the exceptions that `Failed`
    creates.

    `place` is the name of the database that users see.
    """

    @property
    def place(self) -> str:
        """Return the name of the database that users see."""
        ...

    def read(self, work: Callable[[Query], T]) -> T:
        """Run `work` on one consistent snapshot."""
        ...

    def write(self, work: Callable[[Query], T]) -> T:
        """Run `work` in a transaction, which is durable when this method returns. After a conflict, `work` is run
        again."""
        ...

    def forget(self, receipts: Sequence[UUID]) -> None:
        """Delete the receipts of writes whose outcome is known, and old receipts of killed processes. Never
        raises."""
        ...

    def close(self) -> None:
        """Close all connections. A second call has no effect."""
        ...


def first(rows: Sequence[Row]) -> Row | None:
    """Return the first row, or None if there is none."""
    return rows[0] if rows else None
