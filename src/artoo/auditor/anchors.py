"""Write `anchors.jsonl`, the heads and counts of all chains, so that truncated or missing chains are detected.

Every line records an event in the life of a chain:

    opened     the chain was created
    head       the chain's current head
    closed     the chain was closed by its process
    died       written by an earlier version, for a chain without a closing record and without a process
    retired    the chain's files were removed, because of their age or total size

All processes of a home use the same file, and each appends to it under a lock. The file is a chain itself. Every
later chain contains the head of this file in its opening record, and `audit_stats.json` contains it too. A
truncation of this file is therefore noticed as well.
"""

from __future__ import annotations

import fcntl
import os
from datetime import datetime
from pathlib import Path
from typing import Literal

from artoo.auditor.chain import Head, add, link_of
from artoo.auditor.files import append, cut_torn_line, last_line, open_for_appending
from artoo.auditor.layout import ANCHORS

Event = Literal["opened", "head", "closed", "retired"]


class Anchors:
    """The file of anchors, opened to append to it. Blocking. Raises OSError."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = open_for_appending(directory / ANCHORS)
        self._head = Head()
        self._size = -1

    @property
    def head(self) -> Head:
        """Return the head of the file at the time when this process last wrote or read it."""
        return self._head

    def look(self) -> Head:
        """Return the current head of the file."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            self._catch_up()
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return self._head

    def write(self, chain: str, event: Event, head: Head, at: datetime, *, sync: bool = False) -> None:
        """Append an anchor of a chain. `sync`: true to flush the file to disk."""
        record = {"at": at, "chain": chain, "event": event, "count": head.count, "head": head.hash}
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            self._catch_up()
            line, after = add(self._head, record)
            append(self._descriptor, line, self._size)
            self._head, self._size = after, self._size + len(line)
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        if sync:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _catch_up(self) -> None:
        """Read the lines that other processes have appended since."""
        if os.fstat(self._descriptor).st_size == self._size:
            return
        self._size = cut_torn_line(self._descriptor)
        line = last_line(self._descriptor, self._size)
        link = link_of(line) if line is not None else None
        # An invalid last line is damage, which `artoo audit verify` reports. The file continues with a new chain
        # after it.
        self._head = Head(link.number, link.hash) if link is not None else Head()
