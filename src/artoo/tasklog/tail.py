"""Follow one growing log by line numbers, in chunks.

The writer may be another process.

The number of a line is its index, from 0, among all lines except headers. This number never changes, because logs
are append-only.
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

# Number of bytes that one read takes. For a short time, a reader needs about four times as much memory.
CHUNK = 256 * 1024

# The tail ends at a line that is longer than this. Such a line does not belong to a log, because long strings are
# stored next to the log.
LONGEST_LINE = 64 * 1024 * 1024

# The offset of every 64th line is stored, so a log of a million lines needs only 125 KB for offsets. To find
# another line, the lines after a stored offset are counted.
EVERY = 64

_REFERENCE = f'"{REFERENCE_KEY}"'.encode()


class LogTail:
    """A reader that returns the whole lines of a log in order. An unfinished line is returned once it is complete.

    Methods block, and only one thread may call them at a time. A missing log counts as a log without lines.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._blobs = BlobStore(directory)
        self._marks = array("Q")
        """The offset of each line whose number is a multiple of EVERY, within the part that contains the line."""
        self._firsts = [0]
        """The number of the first line of each part."""
        self._offset = 0
        self._header = True
        self.count = 0
        """The number of lines that have been read so far, without headers."""

    def read(self) -> list[bytes]:
        """Return the next lines without their line ends, at most one chunk of them. Return an empty list if there
        are no new lines."""
        while True:
            part = len(self._firsts) - 1
            # This is checked before reading, because once the next part exists, no more lines are added to this
            # part.
            more = part_path(self._directory, part + 1).exists()
            lines = self._take(self._whole_lines(part_path(self._directory, part)))
            if lines:
                return lines
            if not more:
                return []
            self._next_part()

    def _whole_lines(self, path: Path) -> bytes:
        """Return the next whole lines of a part.

        An incomplete line is read again each time, because its writer may still change it.
        """
        size = CHUNK
        while True:
            data = _read_at(path, self._offset, size)
            end = data.rfind(b"\n") + 1
            if end or len(data) < size or size >= LONGEST_LINE:
                return data[:end]
            size *= 2

    def fields(self, number: int) -> dict[str, object]:
        """Return the parsed fields of a line that was read before, with its long strings.

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
        """Read lines again by their numbers, which must be in ascending order, and return them unparsed.

        Raises OSError if the log has been deleted.
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
                            file.readline()  # This line is the header of the part.
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
