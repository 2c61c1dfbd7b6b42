"""Goes along a chain's lines, each checked against the one before, with two of them in memory at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artoo.auditor.chain import NOTHING, Head, Link, link_of
from artoo.auditor.files import lines_of

What = Literal["changed", "removed", "reordered", "duplicated", "cut", "missing", "added"]
Report = Callable[[Path, int | None, What, str], None]
Read = Callable[[int], object]
"""Hears how many more bytes were read. Quick, never raises."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A line of a chain and where it stands."""

    file: Path
    line: int
    link: Link | None


class Numbers:
    """A set of numbers, kept as spans: those of a whole chain are one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, number: int) -> None:
        at = bisect_right(self._starts, number) - 1
        if at >= 0 and number <= self._ends[at]:
            return
        joins_left = at >= 0 and self._ends[at] == number - 1
        joins_right = at + 1 < len(self._starts) and self._starts[at + 1] == number + 1
        if joins_left and joins_right:
            self._ends[at] = self._ends.pop(at + 1)
            del self._starts[at + 1]
        elif joins_left:
            self._ends[at] = number
        elif joins_right:
            self._starts[at + 1] = number
        else:
            self._starts.insert(at + 1, number)
            self._ends.insert(at + 1, number)

    def holds(self, first: int, last: int) -> bool:
        """Whether all numbers from `first` to `last` are in it."""
        at = bisect_right(self._starts, first) - 1
        return at >= 0 and last <= self._ends[at]

    def spans(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Those from `first` to `last`, as spans."""
        at = max(0, bisect_right(self._starts, first) - 1)
        while at < len(self._starts) and self._starts[at] <= last:
            start, end = max(first, self._starts[at]), min(last, self._ends[at])
            if start <= end:
                yield start, end
            at += 1

    def __len__(self) -> int:
        """How many spans there are."""
        return len(self._starts)


class Walk:
    """The lines of a chain's files in order; iterate once.

    Afterwards `torn` says whether the last one is unfinished, `last` which the last whole one is, `most` the
    highest number.
    """

    def __init__(self, parts: Sequence[Path], report: Report, read: Read = bool) -> None:
        self.torn = False
        self.last: Placed | None = None
        self.most = 0
        self._parts = parts
        self._report = report
        self._read = read
        self._seen = Numbers()
        self._all: Numbers | None = None

    def __iter__(self) -> Iterator[Placed]:
        head = Head()
        for placed in self._lines():
            if self.last is not None:
                head = self._check(self.last, head, placed.link)
                yield self.last
            self.last = placed
        if self.last is not None:
            self._check(self.last, head, None)
            yield self.last

    def _lines(self) -> Iterator[Placed]:
        for path in self._parts:
            for number, (line, whole) in enumerate(lines_of(path), 1):
                self._read(len(line) + 1)
                if whole:
                    yield Placed(path, number, link_of(line))
                else:
                    self.torn = True

    def _check(self, each: Placed, head: Head, follows: Link | None) -> Head:
        """One line after `head`; what the next one has to follow."""
        link, due = each.link, head.count + 1
        if link is not None:
            self.most = max(self.most, link.number)
        if link is None or not link.sound:
            self._report(each.file, each.line, "changed", "its hash is not that of what it says")
            # Goes on with what the line was, as far as the next one tells.
            return Head(due, follows.previous if follows is not None else NOTHING)
        if self._seen.holds(link.number, link.number):
            self._report(each.file, each.line, "duplicated", f"record {link.number} stands in the file before")
            return head
        self._seen.add(link.number)
        if link.number == due:
            if link.previous != head.hash:
                what = f"record {due} follows another one than is there"
                self._report(each.file, max(1, each.line - 1), "changed", what)
            return Head(link.number, link.hash)
        if link.number < due or self._comes_later(due, link.number - 1):
            what = f"record {link.number} stands where {due} has its place"
            self._report(each.file, each.line, "reordered", what)
        else:
            gone = f"record {due}" if link.number == due + 1 else f"records {due} to {link.number - 1}"
            self._report(each.file, each.line, "removed", f"{gone} stood before this line")
        return Head(max(link.number, head.count), link.hash if link.number > head.count else head.hash)

    def _comes_later(self, first: int, last: int) -> bool:
        """Whether one of these records stands further down; only a damaged chain is read once more for it."""
        if self._all is None:
            self._all = Numbers()
            for path in self._parts:
                for line, whole in lines_of(path):
                    link = link_of(line) if whole else None
                    if link is not None and link.sound:
                        self._all.add(link.number)
        return any(not self._seen.holds(*span) for span in self._all.spans(first, last))
