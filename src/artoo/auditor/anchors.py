"""Store heads and counts of all chains outside them, so that a cut tail or a missing file is detected.

Every line says what happened to a chain:

    opened     it begins
    head       it stood so when this was written
    closed     its process ended in order
    died       an earlier version found it without a closing record, and no process writing it
    retired    its files were removed, because they are older or more than is kept

The file is shared by all processes of a home; each appends under a lock. It is a chain itself. The opening record
of every later chain and `audit_stats.json` hold its head, so that its tail cannot be cut unseen either.
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
    """The anchors file, open for appending. Blocking. Raises OSError."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = open_for_appending(directory / ANCHORS)
        self._head = Head()
        self._size = -1

    @property
    def head(self) -> Head:
        """Return where the file stood when this process last wrote to it or looked."""
        return self._head

    def look(self) -> Head:
        """Return where the file stands now."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            self._catch_up()
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return self._head

    def write(self, chain: str, event: Event, head: Head, at: datetime, *, sync: bool = False) -> None:
        """Anchor a chain. `sync`: asks the disk to keep it."""
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
        """Read what other processes have written since."""
        if os.fstat(self._descriptor).st_size == self._size:
            return
        self._size = cut_torn_line(self._descriptor)
        line = last_line(self._descriptor, self._size)
        link = link_of(line) if line is not None else None
        # A last line that is none is damage: `artoo audit verify` names it, and a new chain begins after it.
        self._head = Head(link.number, link.hash) if link is not None else Head()
