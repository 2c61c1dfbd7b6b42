"""Write this process's chain of the audit log, with the lines between anchors and the seconds between syncs.

The chain consists of parts of limited size.

The functions block, so they should be called in a worker thread. Errors of the disk are not raised. Records that
cannot be written are counted. The next line of the chain contains their number.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from artoo.auditor.anchors import Anchors, Event
from artoo.auditor.chain import Head, add_encoded
from artoo.auditor.files import append, open_for_appending
from artoo.auditor.layout import TrailLimits, part_path

# These imports are not needed for the first record of a process.
if TYPE_CHECKING:
    from artoo.contracts.audit import AuditReport, Finding
    from artoo.contracts.envelope import Envelope
    from artoo.ports.spool import Gap

logger = logging.getLogger(__name__)

ANCHOR_EVERY = 1_000
"""Number of records after which the chain is anchored. It is also anchored at the end of each task and of the
process."""
SYNC_EVERY_SECONDS = 60.0


class Trail:
    """The chain that this process writes. It is made when the first record is written, so that an idle process
    makes no file.

    `lost` is the number of records that could not be written.
    """

    def __init__(self, directory: Path, limits: TrailLimits | None = None) -> None:
        self._directory = directory
        self._limits = limits or TrailLimits()
        self._anchors: Anchors | None = None
        self._descriptor: int | None = None
        self.chain = ""
        self._head = Head()
        self._part = 0
        self._size = 0
        self._anchored = 0
        self._synced = datetime.max.replace(tzinfo=UTC)
        self.lost = 0
        self._unnoted = 0
        self._fault = ""
        self._known = False

    @property
    def head(self) -> Head:
        """Return the number of records and the hash of the last one."""
        return self._head

    @property
    def anchors(self) -> Head:
        """Return the head of the anchors file when this process last saw it."""
        return self._anchors.head if self._anchors is not None else Head()

    def write(self, records: Sequence[bytes], at: datetime, *, anchor: bool = False) -> None:
        """Append records, which are encoded JSON objects. `anchor`: true to anchor the head of the chain at
        once."""
        if not records:
            return
        try:
            if self._descriptor is None:
                self._open(at)
            self._make_known(at)
            if self._unnoted:
                lost = {"type": "lost", "at": at, "count": self._unnoted, "reason": self._fault}
                self._append([encoded(lost)])
                self._unnoted = 0
            self._append(records)
        except OSError as error:
            self._lose(len(records), error)
            return
        if anchor or self._head.count - self._anchored >= ANCHOR_EVERY:
            self._anchor(at)

    def anchor_other(self, chain: str, event: Event, head: Head, at: datetime) -> None:
        """Anchor an event of another process's chain. Raises OSError."""
        if self._anchors is not None:
            self._anchors.write(chain, event, head, at)

    def note_fault(self, error: OSError) -> None:
        """Record that a file next to the chain could not be written. The closing record will contain the reason."""
        self._fault = self._fault or str(error)

    def close(self, at: datetime) -> None:
        """Close the chain. A closing record is written, the file is flushed to disk, and the last anchor is
        written.

        If the disk is full, the chain stays open, which a later verification reports.
        """
        if self._descriptor is None:
            return
        try:
            self._end(at)
        except OSError as error:
            self._lose(1, error)
        finally:
            os.close(self._descriptor)
            self._descriptor = None
            if self._anchors is not None:
                self._anchors.close()

    def _end(self, at: datetime) -> None:
        """Write the closing record and its anchor, or neither of them."""
        self._make_known(at)
        size, head = self._size, self._head
        ending = {"type": "closed", "at": at, "lost": self.lost}
        self._append([encoded({**ending, "reason": self._fault} if self._fault else ending)])
        try:
            if self._descriptor is not None:
                os.fsync(self._descriptor)
            if self._anchors is not None:
                self._anchors.write(self.chain, "closed", self._head, at, sync=True)
        except OSError:
            if self._descriptor is not None and self._size > size:
                os.ftruncate(self._descriptor, size)
                self._size, self._head = size, head
            raise

    def _lose(self, count: int, error: OSError) -> None:
        if not self._unnoted:
            logger.error("the audit log in %s cannot be written: %s", self._directory, error)
        self._fault = str(error)
        self.lost += count
        self._unnoted += count

    def _append(self, records: Iterable[bytes]) -> None:
        """Append to the current part. If that is full, begin the next part."""
        if self._size >= self._limits.part:
            self._rotate()
        if self._descriptor is None:
            raise OSError("the audit log is not open")
        block, head = list[bytes](), self._head
        for record in records:
            line, head = add_encoded(head, record)
            block.append(line)
        append(self._descriptor, b"".join(block), self._size)
        self._size, self._head = self._size + sum(map(len, block)), head

    def _anchor(self, at: datetime) -> None:
        if self._anchors is None or self._descriptor is None:
            return
        due = (at - self._synced).total_seconds() >= SYNC_EVERY_SECONDS
        try:
            if due:
                os.fsync(self._descriptor)
                self._synced = at
            self._anchors.write(self.chain, "head", self._head, at, sync=due)
            self._anchored = self._head.count
        except OSError as error:
            logger.warning("the audit log's head could not be anchored in %s: %s", self._directory, error)

    def _open(self, at: datetime) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._anchors = self._anchors or Anchors(self._directory)
        self.chain = self.chain or f"{at:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        self._open_part()
        before = self._anchors.look()
        opening: dict[str, object] = {
            "type": "opened",
            "at": at,
            "chain": self.chain,
            "pid": os.getpid(),
            "anchors": {"count": before.count, "head": before.hash},
        }
        self._synced = at
        if self._head.count == 0:
            self._append([encoded(opening)])

    def _make_known(self, at: datetime) -> None:
        """Anchor the new chain. As long as this has not succeeded, no record is written after the opening one.
        Raises OSError."""
        if not self._known and self._anchors is not None:
            self._anchors.write(self.chain, "opened", self._head, at)
            self._known = True

    def _open_part(self) -> None:
        descriptor = open_for_appending(part_path(self._directory, self.chain, self._part))
        # The file is locked while the chain is written, so that other processes can see that its process is
        # running.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor, self._size = descriptor, os.fstat(descriptor).st_size

    def _rotate(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        self._part += 1
        self._open_part()


def is_being_written(path: Path) -> bool:
    """Check whether a running process has this part of a chain open for writing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def encoded(record: Mapping[str, object]) -> bytes:
    """Encode a record for the chain."""
    return orjson.dumps(record)


def header_record(envelope: Envelope) -> bytes:
    """Return the record of a message's header."""
    record: dict[str, object] = {
        "type": "message",
        "at": envelope.at,
        "id": envelope.id,
        "kind": envelope.kind,
        # a string in the same form as in contracts.codec, so that both encodings are equal
        "sender": str(envelope.sender),
        "task": envelope.task_id,
    }
    if envelope.subtask_id is not None:
        record["subtask"] = envelope.subtask_id
    if envelope.cause_id is not None:
        record["cause"] = envelope.cause_id
    return orjson.dumps(record)


def gap_record(gap: Gap, at: datetime) -> bytes:
    """Return the record that messages are missing which no receiver got."""
    return encoded({"type": "gap", "at": at, "count": gap.count, "reason": gap.reason[:500]})


def finding_record(finding: Finding) -> bytes:
    """Return the record of a finding."""
    return encoded({"type": "finding", **finding.model_dump(mode="json")})


def report_record(report: AuditReport) -> bytes:
    """Return the record of a report."""
    return encoded({"type": "report", "at": report.window_end, "report": report.model_dump(mode="json")})


def log_record(task_id: str, file: str, point: tuple[int, str], at: datetime) -> bytes:
    """Return the record that anchors a task log. It has a number of bytes, and the sha256 of that many first bytes
    of the file."""
    return encoded({"type": "log", "at": at, "task": task_id, "file": file, "points": [point]})
