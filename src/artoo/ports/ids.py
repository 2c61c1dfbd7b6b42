"""Define identifiers as a port, because replay and tests use their own."""

from __future__ import annotations

from typing import Protocol


class Ids(Protocol):
    """Makes unique identifiers that sort by creation."""

    def new(self) -> str:
        """Make a UUIDv7 in canonical form (36 characters). From any thread."""
        ...
