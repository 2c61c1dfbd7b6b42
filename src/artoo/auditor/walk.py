"""Iterate over the lines of one chain, and check number and hash of each against the previous line.

Only two lines are in memory at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artoo.auditor.chain import Head, Link, link_of
from artoo.auditor.files import lines_of

What = Literal["changed", "removed", "cut", "missing", "added"]
Report = Callable[[Path, int | None, What, str], None]
Read = Callable[[int], object]
"""Called with the number of bytes that were read since the last call. It must be fast and never raise."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A line of a chain with its file and line number."""

    file: Path
    line: int
    link: Link | None

    @property
    def sound(self) -> Link | None:
        """Return the link if its hash is correct. Otherwise return None."""
        return self.link if self.link is not None and self.link.sound else None


class Walk:
    """Iterates once over the lines of a chain's files, in order. The first line that breaks the chain is reported.

    Afterwards `torn` says whether the last line is incomplete, `last` is the last complete line, and `most` is the
    highest number of a record.
    """

    def __init__(self, parts: Sequence[Path], report: Report, read: Read = bool) -> None:
        self.torn = False
        self.last: Placed | None = None
        self.most = 0
        self._parts = parts
        self._report = report
        self._read = read
        self._head: Head | None = Head()
        """The head that the next line must follow. It is None after the chain was broken."""

    def __iter__(self) -> Iterator[Placed]:
        for path in self._parts:
            for number, (line, whole) in enumerate(lines_of(path), 1):
                self._read(len(line) + 1)
                # The last line may be incomplete while its process is running, which is no damage.
                if not whole:
                    self.torn = True
                    continue
                placed = Placed(path, number, link_of(line))
                if placed.link is not None:
                    self.most = max(self.most, placed.link.number)
                if self._head is not None:
                    self._head = self._after(placed, self._head)
                self.last = placed
                yield placed

    def _after(self, each: Placed, head: Head) -> Head | None:
        """Return the head after this line. If the line does not follow `head`, report that and return None."""
        link, due = each.sound, head.count + 1
        if link is None:
            self._report(each.file, each.line, "changed", "its hash is not that of what it says")
        elif link.number < due:
            self._report(each.file, each.line, "added", f"record {link.number} stands in the file before")
        elif link.number > due:
            gone = f"record {due}" if link.number == due + 1 else f"records {due} to {link.number - 1}"
            self._report(each.file, each.line, "removed", f"{gone} stood before this line")
        elif link.previous != head.hash:
            what = f"record {due} follows another one than is there"
            self._report(each.file, max(1, each.line - 1), "changed", what)
        else:
            return Head(link.number, link.hash)
        return None
