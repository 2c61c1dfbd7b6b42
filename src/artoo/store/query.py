"""One SQL text for SQLite and PostgreSQL: what may be done inside one transaction, and the few differences.

    Engine.read(work)    work(query) on one consistent snapshot
    Engine.write(work)   work(query) in one transaction: all of it, or nothing when it raises

Statements are in the SQL that both have in common, with `?` or `:name` for parameters. The differences are here and
in `sqlite.py` and `postgres.py`: the signs for parameters, the types of bytes and of exact numbers, held rows, and
statements sent together. Both have the SQL function `now_us()`, the clock of the store in microseconds since 1970.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")

Value = str | int | float | bool | bytes | Decimal | None
Parameters = Sequence[Value] | Mapping[str, Value]
Hold = Literal["wait", "skip"]
"""What a writer does about a row that another one holds: waits until that ends, or passes it over."""

Dialect = Literal["sqlite", "postgresql"]
_TYPES: Mapping[Dialect, Mapping[str, str]] = {
    "sqlite": {"BYTES": "BLOB", "EXACT": "TEXT"},
    "postgresql": {"BYTES": "bytea", "EXACT": "numeric"},
}
_TYPE = re.compile(r"\b(BYTES|EXACT)\b")
_TOKENS = re.compile(r"'(?:[^']|'')*'|\?|:([a-z][a-z0-9_]*)|%")

Failure = Literal["away", "data", "full", "damaged", "other"]
"""`away`: it cannot be used now, and may be later; `data`: this very change cannot be stored; `full`: there is no
room; `damaged`: the file cannot be read."""


class StoreFailure(Exception):
    """A store could not be used: what is wrong, where, what to do. Packages turn it into errors of their own."""

    def __init__(self, message: str, kind: Failure) -> None:
        super().__init__(message)
        self.kind = kind


class Row(Protocol):
    """One row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...


class Query(ABC):
    """One transaction of one engine."""

    dialect: Dialect

    @abstractmethod
    def all(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """Return every row; bound what you ask for with LIMIT."""

    @abstractmethod
    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Execute one statement; how many rows it changed."""

    @abstractmethod
    def each(self, sql: str, parameters: Sequence[Parameters]) -> list[Sequence[Row]]:
        """Execute one query for many parameters; the rows of each. It costs one round trip over a network."""

    @abstractmethod
    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        """Execute one statement that gives nothing for many parameters."""

    @abstractmethod
    def holding(self, sql: str, hold: Hold) -> str:
        """Return a query whose rows nobody else changes before this transaction ends."""

    @abstractmethod
    def alone(self, what: str) -> None:
        """Wait until no other transaction that asked for `what` is under way."""

    @abstractmethod
    def exact(self, number: int) -> Value:
        """Return a whole number of any size as a parameter. Columns of the type EXACT are read with `int`."""

    @abstractmethod
    def exact_sum(self, one: str, other: str) -> str:
        """Return the SQL of the sum of two exact numbers: `other` may be a parameter."""

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self.all(sql, parameters)
        return rows[0] if rows else None


class Engine(ABC):
    """An open database. It blocks, and may be used from any thread. Every method raises StoreFailure."""

    place: str
    """Where it is, for a person."""

    @abstractmethod
    def read(self, work: Callable[[Query], T]) -> T:
        """Run `work` on one consistent snapshot."""

    @abstractmethod
    def write(self, work: Callable[[Query], T]) -> T:
        """Run `work` in a transaction, durable when this returns. It may run more than once, after a conflict."""

    @abstractmethod
    def close(self) -> None:
        """End all connections. Idempotent."""


def typed(sql: str, dialect: Dialect) -> str:
    """Return the text of a schema with the dialect's names for the types BYTES and EXACT."""
    return _TYPE.sub(lambda match: _TYPES[dialect][match[0]], sql)


@lru_cache(maxsize=1_024)
def for_psycopg(sql: str) -> bytes:
    """Return SQL as psycopg takes it: `?` becomes `%s` and `:name` becomes `%(name)s`; what stands between quotes
    stays, except that a percent sign is doubled.
    """
    return _TOKENS.sub(_token, sql).encode()


def _token(match: re.Match[str]) -> str:
    text = match[0]
    if text == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return text.replace("%", "%%")
