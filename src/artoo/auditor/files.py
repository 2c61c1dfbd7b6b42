"""Append whole lines to a file, cut a torn last line, and read lines backwards or forwards.

Chains and anchors use these functions.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

_TAIL = 64 * 1024


def open_for_appending(path: Path) -> int:
    """Open a file to append to it. If it does not exist, it is made with mode 0600. Return the descriptor. Raises
    OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


@contextmanager
def open_for_reading(path: Path) -> Generator[tuple[int, int]]:
    """Open a file for reading. Yields its descriptor, and its size up to the end of the last complete line. Raises
    OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor, _whole_size(descriptor)
    finally:
        os.close(descriptor)


def append(descriptor: int, block: bytes, size: int) -> None:
    """Write the whole block. If this fails, truncate the file to `size` bytes and raise OSError."""
    done = 0
    try:
        while done < len(block):
            done += os.write(descriptor, block[done:])
    # A partial line would break the chain for all later records.
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def cut_torn_line(descriptor: int) -> int:
    """Remove the last line if a crash has left it incomplete. Return the size of the file."""
    end = _whole_size(descriptor)
    if end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
    return end


def _whole_size(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _TAIL)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def last_line(descriptor: int, size: int) -> bytes | None:
    """Return the last complete line of a file with `size` bytes that ends with a line end. Return None if the file
    is empty."""
    start, tail = size, b""
    while start > 0 and tail.count(b"\n") < 2:
        before = max(0, start - _TAIL)
        tail = os.pread(descriptor, start - before, before) + tail
        start = before
    lines = tail.split(b"\n")
    return lines[-2] if len(lines) > 1 else None


def lines_of(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its line end, and whether it has a line end."""
    with path.open("rb") as file:
        for line in file:
            whole = line.endswith(b"\n")
            yield (line[:-1] if whole else line), whole
