"""What is around a request, in a few lines that a small model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`listing`: the project with heads of named files. `missing`: what has the form
    of a file's path in the request and is nowhere.

    `found_elsewhere`: named inputs that are not where the request says, with where they are. `points_to`: a named
    file, and an existing file whose path or name is a line of it. `first_lines`: paths of text files that were
    looked into, with their first lines.
    """

    listing: str = ""
    missing: tuple[str, ...] = ()
    found_elsewhere: tuple[tuple[str, str], ...] = ()
    guide: str = ""
    points_to: tuple[tuple[str, str], ...] = ()
    first_lines: tuple[tuple[str, str], ...] = ()


class SurroundingsSource(Protocol):
    """Looks at the project root. Read-only, bounded in time and size."""

    async def look(self, request: str) -> Surroundings:
        """What is there that matters for `request`. Never raises."""
        ...
