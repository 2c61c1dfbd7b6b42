"""What the page knows of one task's log: where its lines are, which of them matter, and the story that they tell.

Built once and carried on as the log grows, for all pages that look at the task: ten pages read a log once.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts import codec
from artoo.contracts.errors import MessageUnreadable
from artoo.tasklog.layout import GAP_KEY
from artoo.tasklog.tail import LogTail
from artoo.web.rows import Row, quiet, row_of
from artoo.web.story import TOLD, Story, tally

MOST_OPEN = 16
"""Tasks whose index is kept; a task that is looked at again is read again."""

MOST_ROWS = 400
"""Rows of one answer."""

SLICE_SECONDS = 0.15
"""How long a reading thread goes on before others have their turn."""

_KIND = re.compile(rb'"kind":"([A-Za-z]{1,64})"')


@dataclass(frozen=True, slots=True)
class Fold:
    """A run of lines that say little, in the short view: the first one's number, and how many."""

    first: int
    count: int


class TaskIndex:
    """One log, as far as it was read. Its methods block; `advance` is called by one thread at a time."""

    def __init__(self, directory: Path) -> None:
        self._tail = LogTail(directory)
        self._reading = threading.Lock()
        self._short = array("q")
        """The short view: a line's number, or the negative count of a run of quiet ones."""
        self._ends = array("Q")
        """For each entry of the short view the number after its last line."""
        self.story = Story()
        self.counted = 0
        """Lines that are in the views; those that were read and are not yet counted come later."""

    @property
    def short_count(self) -> int:
        """Entries of the short view."""
        return len(self._short)

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        """Reads what is new, for about this long. True when it has reached the end of the log."""
        until = time.monotonic() + seconds
        with self._reading:
            while True:
                lines = self._tail.read()
                for line in lines:
                    self._count(line)
                if not lines:
                    return True
                if time.monotonic() >= until:
                    return False

    def rows(self, first: int, count: int) -> list[Row]:
        """These lines, as far as they are there, at most `MOST_ROWS`."""
        first = max(0, first)
        count = min(count, MOST_ROWS, self.counted - first)
        if count <= 0:
            return []
        return [row_of(number, line) for number, line in enumerate(self._tail.lines(first, count), first)]

    def short(self, first: int, count: int) -> list[Row | Fold]:
        """Entries of the short view."""
        first, found = max(0, first), list[Row | Fold]()
        for place in range(first, min(first + min(count, MOST_ROWS), len(self._short))):
            entry, end = self._short[place], self._ends[place]
            found.append(Fold(end + entry, -entry) if entry < 0 else self.rows(entry, 1)[0])
        return found

    def fields(self, number: int) -> dict[str, object]:
        """One line, whole. Raises IndexError, MessageUnreadable, OSError."""
        if number >= self.counted:
            raise IndexError(f"this log has no line {number}")
        return self._tail.fields(number)

    def _count(self, line: bytes) -> None:
        number = self.counted
        found = _KIND.search(line, 0, 400)
        kind = GAP_KEY if found is None else found[1].decode()
        try:
            self._tell(kind, line, number)
        except MessageUnreadable:
            self.story.unreadable += 1
        if quiet(kind, line):
            if self._short and self._short[-1] < 0:
                self._short[-1] -= 1
                self._ends[-1] = number + 1
            else:
                self._short.append(-1)
                self._ends.append(number + 1)
        else:
            self._short.append(number)
            self._ends.append(number + 1)
        self.counted = number + 1

    def _tell(self, kind: str, line: bytes, number: int) -> None:
        if kind in TOLD:
            # From the tail and not from the line: long strings may stand beside the log.
            self.story.hear(codec.from_fields(self._tail.fields(number)), number)
        else:
            tally(self.story, kind, line)


class Indexes:
    """The indexes of the tasks that are looked at now, latest last."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, TaskIndex] = OrderedDict()

    def of(self, directory: Path) -> TaskIndex:
        """The index of the log in this directory, made if need be."""
        index = self._open.get(directory)
        if index is None:
            index = self._open[directory] = TaskIndex(directory)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(directory)
        return index

    async def advanced(self, directory: Path, seconds: float = SLICE_SECONDS) -> tuple[TaskIndex, bool]:
        """The index, carried on for about that long, and whether it is at the log's end."""
        index = self.of(directory)
        return index, await asyncio.to_thread(index.advance, seconds)
