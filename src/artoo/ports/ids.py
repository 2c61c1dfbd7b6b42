"""Identifiers as a port: replay and tests bring their own."""

from __future__ import annotations

from typing import Protocol


class Ids(Protocol):
    """Makes unique identifiers that sort by creation."""

    def new(self) -> str:
        """Make a UUIDv7 in canonical form (36 characters). From any thread."""
        ...
