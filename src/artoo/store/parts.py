"""What a home keeps, part by part, as it moves into a store and back: the same rows, proved by hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import orjson

from artoo.store.address import StoreAddress

Cell = str | int | float | bytes | None
Record = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """One table of a part: how many rows, and the hash of all of them in their order."""

    table: str
    rows: int
    sha256: str


class Part(Protocol):
    """One part of what a home keeps: the books, memory. Everything blocks and raises ArtooError."""

    @property
    def name(self) -> str:
        """For a person."""
        ...

    def in_home(self) -> tuple[Counted, ...]:
        """What the home has; empty when it has nothing of this."""
        ...

    def in_store(self, address: StoreAddress) -> tuple[Counted, ...]:
        """What the store has."""
        ...

    def move_in(self, address: StoreAddress) -> tuple[Counted, ...]:
        """Copies the home's into the store, which must have none; compared before it counts, all or nothing."""
        ...

    def move_out(self, address: StoreAddress) -> tuple[Counted, ...]:
        """Copies the store's into the home, which must have none; compared before it counts, all or nothing."""
        ...


class Counting:
    """Counts and hashes rows as they pass."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._rows = 0
        self._hash = hashlib.sha256()

    def add(self, records: Iterable[Record]) -> None:
        """Rows in the order in which both sides read them; truth values as 0 and 1."""
        for record in records:
            self._rows += 1
            self._hash.update(orjson.dumps(record, default=bytes.hex) + b"\n")

    def counted(self) -> Counted:
        """Of what has passed."""
        return Counted(self._table, self._rows, self._hash.hexdigest())
