"""Define the query layer: one SQL text for SQLite and PostgreSQL, inside one transaction of either.

    Engine.read(work)    work(query) on one consistent snapshot
    Engine.write(work)   work(query) in one transaction: all of it, or nothing when it raises

Statements are in the SQL that both have in common, with `?` for parameters. Both have the functions `now_us()`, the
clock of the store in microseconds since 1970, and `exact_sum(a, b)` for whole numbers of any size, which are given
as text and read with `int`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

T = TypeVar("T")

Value = str | int | float | bool | bytes | None
Values = Sequence[Value] | Mapping[str, Value]
Asked = tuple[str, Sequence[Values]]
"""One statement, and the parameters of each time that it is executed."""

Hold = Literal["wait", "skip"]
"""How a writer treats a row that another transaction holds: wait for its end, or pass the row over."""

Dialect = Literal["sqlite", "postgresql"]

Failure = Literal["away", "unanswered", "unready", "full", "stuck", "refused", "data", "other"]
"""`away`: the store cannot be reached now; `unanswered`: neither can it, and the commit may have been made;
`unready`: the store is not set up for this program; `full`: the disk is; `stuck`: the store could not do it this
time; `refused`: the role lacks the right; `data`: this very change cannot be stored."""
Failed = Callable[[str, Failure], Exception]
"""Makes the error of a package from what is wrong, where, and what to do."""


class Row(Protocol):
    """One row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...

    def keys(self) -> Any:
        """Return the names."""
        ...


class Query(Protocol):
    """One transaction of one engine."""

    @property
    def dialect(self) -> Dialect:
        """Return which SQL the engine speaks, for the few statements that both do not have in common."""
        ...

    def all(self, sql: str, values: Values = ()) -> Sequence[Row]:
        """Return every row; bound what you ask for with LIMIT."""
        ...

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute one statement; how many rows it changed."""
        ...

    def each(self, *asked: Asked) -> list[list[Sequence[Row]]]:
        """Execute every statement for each of its parameters; the rows of each. One trip over a network."""
        ...

    def many(self, sql: str, values: Sequence[Values]) -> None:
        """Execute one statement that gives nothing for many parameters."""
        ...

    def holding(self, sql: str, hold: Hold) -> str:
        """Return a query whose rows no other transaction changes before this one ends."""
        ...

    def alone(self, what: str) -> None:
        """Wait until no other transaction that asked for `what` is under way."""
        ...

    def keep_out(self, tables: str) -> None:
        """Lock these tables against all other writers until the transaction ends, however long that takes."""
        ...

    def first_time(self, receipt: UUID, forget: Sequence[UUID]) -> bool:
        """Store a receipt in this transaction and delete others; False if one with this receipt was committed."""
        ...

    def size(self, prefix: str) -> int:
        """Return the bytes of all tables whose name begins with `prefix`."""
        ...

    def problems(self) -> list[str]:
        """Return what is wrong with the file itself, if there is one; some of it when it is much."""
        ...


class Engine(Protocol):
    """An open database. It blocks, and may be used from any thread. It raises what `Failed` makes.

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
        """Run `work` in a transaction, durable when this returns. It may run more than once, after a conflict."""
        ...

    def forget(self, receipts: Sequence[UUID]) -> None:
        """Delete receipts of writes whose ends are known, and old ones of killed processes. Never raises."""
        ...

    def close(self) -> None:
        """Close all connections. Idempotent."""
        ...


def first(rows: Sequence[Row]) -> Row | None:
    """Return the first row, or None."""
    return rows[0] if rows else None
