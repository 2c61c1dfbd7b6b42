"""`SequentialIds`, ids that a test can predict."""

from __future__ import annotations

from itertools import count


class SequentialIds:
    """The fake implementation of `artoo.ports.ids.Ids`: UUIDv7 form, counting from 1, sorted by creation."""

    def __init__(self) -> None:
        self._count = count(1)

    def new(self) -> str:
        """Return the next id."""
        return f"00000000-0000-7000-8000-{next(self._count):012x}"
