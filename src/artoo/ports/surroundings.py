"""What is around a request, in a few lines that a small model can read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.plan import ShownFile


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`listing`: the project as it is now, with heads of the files that are named. `files`: where whole files are
    wanted, the small ones that are named; the listing has none of their text. `guide`: standing instructions
    of the person and of the project, each with whose they are. `missing`: what has the form of a file's path in the
    request and is nowhere. `changed`: what was created, changed and deleted in the view, a line for each; empty
    where nobody is to be told.
    """

    listing: str = ""
    missing: tuple[str, ...] = ()
    guide: str = ""
    changed: str = ""
    files: tuple[ShownFile, ...] = ()

    @property
    def text(self) -> str:
        """The listing and the files, for a prompt."""
        return with_files(self.listing, self.files)


def with_files(listing: str, files: Iterable[ShownFile]) -> str:
    """A listing and files that were shown whole, as one text."""
    return "\n".join(filter(None, (listing, *(file.text for file in files))))


class SurroundingsSource(Protocol):
    """Looks at the project root. Read-only, bounded in time and size."""

    async def look(self, request: str) -> Surroundings:
        """What is there that matters for `request`. Never raises."""
        ...
