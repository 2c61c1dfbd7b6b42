"""`SequentialIds`, ids that a test can predict."""

from __future__ import annotations

from itertools import count


class SequentialIds:
    """An implementation of `artoo.ports.ids.Ids` for tests. The ids have the form of a UUIDv7, count from 1, and
    sort by creation."""

    def __init__(self) -> None:
        self._count = count(1)

    def new(self) -> str:
        """Return the next id."""
        return f"00000000-0000-7000-8000-{next(self._count):012x}"
