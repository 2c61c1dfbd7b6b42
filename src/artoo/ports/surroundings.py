"""What is around a request, in a few lines that a small model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`listing`: the project with heads of named files. `missing`: named inputs that are nowhere.

    `found_elsewhere`: named inputs that are not where the request says, with where they are.
    """

    listing: str = ""
    missing: tuple[str, ...] = ()
    found_elsewhere: tuple[tuple[str, str], ...] = ()
    guide: str = ""


class SurroundingsSource(Protocol):
    """Looks at the project root. Read-only, bounded in time and size."""

    async def look(self, request: str) -> Surroundings:
        """What is there that matters for `request`. Never raises."""
        ...
