"""The interface of id creation, which replay and tests replace."""

from __future__ import annotations

from typing import Protocol


class Ids(Protocol):
    """A source of unique identifiers that sort by creation time."""

    def new(self) -> str:
        """Make a UUIDv7 in canonical form (36 characters). Any thread may call this."""
        ...
