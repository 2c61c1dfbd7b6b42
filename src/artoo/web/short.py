"""The short view of a log: every line that matters, and one entry for each run of lines that do not.

Costs a byte a line: a page may look at a task of a million events for hours.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

EVERY = 256
"""Of so many entries the first line of one is remembered; the others are counted on from there."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a line, or a run of `quiet` lines that begins there (0: a line that matters)."""

    line: int
    quiet: int


class ShortView:
    """Grows with the log, a line at a time."""

    def __init__(self) -> None:
        self._quiet = bytearray()
        self._marks = array("Q")
        """The first line of every entry whose place is a multiple of EVERY."""
        self.count = 0
        """Entries so far."""

    def add(self, *, quiet: bool) -> None:
        """The next line of the log."""
        if not (quiet and self._quiet and self._quiet[-1]):
            if self.count % EVERY == 0:
                self._marks.append(len(self._quiet))
            self.count += 1
        self._quiet.append(quiet)

    def entries(self, first: int, count: int) -> list[Entry]:
        """These entries, as far as they are there."""
        end, found = min(first + count, self.count), list[Entry]()
        if not 0 <= first < end:
            return found
        place = first - first % EVERY
        line = self._marks[place // EVERY]
        while place < end:
            after = self._after(line)
            if place >= first:
                found.append(Entry(line, after - line if self._quiet[line] else 0))
            place, line = place + 1, after
        return found

    def _after(self, line: int) -> int:
        """The first line of the next entry."""
        if not self._quiet[line]:
            return line + 1
        loud = self._quiet.find(0, line)
        return len(self._quiet) if loud < 0 else loud
