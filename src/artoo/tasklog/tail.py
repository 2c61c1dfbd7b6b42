"""Read one task's log as it grows, also in another process than its writer's, and any part of it again.

A line's number is its place among all lines but the headers, from 0. Logs are only appended to: it never changes.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from artoo.contracts import codec
from artoo.tasklog.blobs import REFERENCE_KEY, BlobStore
from artoo.tasklog.layout import part_path

# Bytes that are read at a time: what a reader's memory goes up by for a moment is some four times that.
CHUNK = 256 * 1024

# A longer line is no line of a log (long strings are stored next to it); the tail ends there.
LONGEST_LINE = 64 * 1024 * 1024

# Of so many lines the place of one is remembered: a log of a million lines costs 125 KB. The others are counted
# on from there.
EVERY = 64

_REFERENCE = f'"{REFERENCE_KEY}"'.encode()


class LogTail:
    """A reader of whole lines in order; an unfinished line comes later.

    Blocking, for one thread at a time. A log that is not there (yet, or any more) has no lines.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._blobs = BlobStore(directory)
        self._marks = array("Q")
        """Where in its part every line begins whose number is a multiple of EVERY."""
        self._firsts = [0]
        """Number of the first line of each part."""
        self._offset = 0
        self._header = True
        self.count = 0
        """Lines that were read so far, headers left out."""

    def read(self) -> list[bytes]:
        """Return the next lines without their ends, at most a chunk of them; empty if there is nothing new."""
        while True:
            part = len(self._firsts) - 1
            # Looked for first: when the next part is there, nothing comes to this one any more.
            more = part_path(self._directory, part + 1).exists()
            lines = self._take(self._whole_lines(part_path(self._directory, part)))
            if lines:
                return lines
            if not more:
                return []
            self._next_part()

    def _whole_lines(self, path: Path) -> bytes:
        """Return the next whole lines of a part.

        A torn line is read again each time, because its writer may change it.
        """
        size = CHUNK
        while True:
            data = _read_at(path, self._offset, size)
            end = data.rfind(b"\n") + 1
            if end or len(data) < size or size >= LONGEST_LINE:
                return data[:end]
            size *= 2

    def fields(self, number: int) -> dict[str, object]:
        """Return a line that was read before, parsed, with its long strings.

        Raises IndexError, MessageUnreadable, OSError.
        """
        if not 0 <= number < self.count:
            raise IndexError(f"this log has no line {number}")
        return self.whole(next(self.lines((number,))))

    def whole(self, line: bytes) -> dict[str, object]:
        """Parse a line, with the long strings that are stored next to the log.

        Raises MessageUnreadable, OSError.
        """
        fields = codec.fields_of(line)
        if _REFERENCE in line and "payload" in fields:
            fields["payload"] = self._blobs.internalise(fields["payload"])
        return fields

    def lines(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Read lines again by their ascending numbers, as they are in the file.

        Raises OSError when the log is gone.
        """
        for part, wanted in groupby(numbers, key=lambda number: bisect_right(self._firsts, number) - 1):
            with part_path(self._directory, part).open("rb") as file:
                place = -1
                for number in wanted:
                    marked = number - number % EVERY
                    if place < max(marked, self._firsts[part]):
                        place = max(marked, self._firsts[part])
                        file.seek(self._marks[marked // EVERY] if place == marked else 0)
                        if place != marked:
                            file.readline()  # the part's header
                    for _ in range(number - place):
                        file.readline()
                    yield file.readline().rstrip(b"\n")
                    place = number + 1

    def _take(self, data: bytes) -> list[bytes]:
        lines: list[bytes] = []
        for line in data.split(b"\n")[:-1]:
            if self._header:
                self._header = False
            else:
                if self.count % EVERY == 0:
                    self._marks.append(self._offset)
                self.count += 1
                lines.append(line)
            self._offset += len(line) + 1
        return lines

    def _next_part(self) -> None:
        self._firsts.append(self.count)
        self._offset, self._header = 0, True


def _read_at(path: Path, offset: int, count: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, count, offset)
    finally:
        os.close(descriptor)
