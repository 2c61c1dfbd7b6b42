"""Append lines to one task's log, rotate its parts, and record gaps of missing messages."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson

from artoo.contracts import codec
from artoo.contracts.envelope import Envelope
from artoo.disk.whole import sync_directory, sync_files
from artoo.redaction import Redactor
from artoo.tasklog.blobs import BlobStore
from artoo.tasklog.layout import GAP_KEY, HEADER_KEY, LOG_VERSION, LogLimits, part_path, parts_of

logger = logging.getLogger(__name__)

LAST_KIND = "FinalResult"
_TAIL = 64 * 1024
# The ballast is a file that is deleted when the disk is full, so that the end of a task can still be written. All
# tasks share it.
_BALLAST, _BALLAST_BYTES = Path("cache", "ballast"), 256 * 1024

Grown = Callable[[str, str, int, str], None]
"""A callback with the state of a log after a write: the names of its directory and its file, the file's size, and
the sha256 (hex) of its content. It must return quickly and never raise."""


class _Block:
    """Lines that are written to disk together, with the number of their messages."""

    __slots__ = ("lines", "messages", "noted", "size")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.size = 0
        self.messages = 0
        self.noted = 0

    def add(self, line: bytes, *, messages: int = 0, noted: int = 0) -> None:
        self.lines.append(line)
        self.size += len(line)
        self.messages += messages
        self.noted += noted


class TaskFile:
    """The parts and blobs of one task's log, open for appending. Methods block, so call them in a worker thread.

    Errors of the disk are not raised. Instead, the messages that cannot be written are counted. `lost` counts all
    lost messages, and `unnoted` counts those of them that the log does not record yet. `reason` says why the last
    message was lost."""

    def __init__(
        self, directory: Path, task_id: str, limits: LogLimits, redactor: Redactor, grown: Grown | None = None
    ) -> None:
        """Prepare the log without opening a file. The content is only hashed if `grown` is given."""
        self._grown = grown
        self._digest = hashlib.sha256()
        self._directory = directory
        self._task_id = task_id
        self._limits = limits
        self._redactor = redactor
        self._blobs = BlobStore(directory)
        self._descriptor: int | None = None
        self._part = 0
        self._name = ""
        self._size = 0
        self._total = 0
        self.reason = ""
        self._block = _Block()
        self.lost = 0
        self.unnoted = 0
        self.ended = False
        """This is True after the task's last message, even if that message was lost."""

    def append(self, envelopes: list[Envelope]) -> None:
        """Append the envelopes. If messages are missing, the number of missing messages is written first."""
        problem = self._opened()
        if problem and LAST_KIND in [envelope.kind for envelope in envelopes] and self._made_room(problem):
            problem = self._opened(ballast=False)
        if problem:
            self.note_lost(len(envelopes), _because(problem))
            return
        encoded = list(map(_encoded, envelopes))
        lines = iter(self._redactor.lines([line for line in encoded if isinstance(line, bytes)]))
        for envelope, line in zip(envelopes, encoded, strict=True):
            self._add(envelope.kind, next(lines) if isinstance(line, bytes) else line)
        self._flush()

    def note_lost(self, count: int, reason: str) -> None:
        """Count messages as lost. The log records the count before its next line, or when it is closed."""
        if not self.unnoted:
            logger.error("task %s: messages are missing in its log: %s", self._task_id, reason)
        self.lost += count
        self.unnoted += count
        self.reason = reason

    def sync(self) -> None:
        """Sync the whole log to disk (fsync). This is done once for each task, at its end.

        Earlier parts, blobs and images are synced as well, because a log with a missing piece proves nothing.
        """
        if self._descriptor is not None:
            try:
                for folder in (self._directory / "blobs", self._directory / "images", self._directory):
                    if folder.is_dir():
                        sync_files(folder)
                sync_directory(self._directory.parent)
            except OSError as error:
                logger.warning("task %s: its log may not survive a power cut: %s", self._task_id, error)

    def close(self) -> None:
        """Write the number of lost messages and close the file. A second call has no effect."""
        if self.unnoted:
            self.append([])
            self._note_gap()
            self._flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, kind: str, line: bytes | Exception) -> None:
        if self._total + self._block.size >= self._limits.total and kind != LAST_KIND:
            self.note_lost(1, f"the log has reached its limit of {self._limits.total} bytes")
            return
        try:
            kept = self._kept(line)
        except (OSError, TypeError, ValueError, RecursionError) as error:
            if kind == LAST_KIND and self._made_room(error):
                self._add(kind, line)
            else:
                self.note_lost(1, _because(error))
            return
        self._note_gap()
        self._queue(kept, messages=1)
        self.ended = self.ended or kind == LAST_KIND

    def _note_gap(self) -> None:
        if self.unnoted:
            line = orjson.dumps({GAP_KEY: {"count": self.unnoted, "reason": self.reason}}) + b"\n"
            self._queue(line, noted=self.unnoted)
            self.unnoted = 0

    def _kept(self, line: bytes | Exception) -> bytes:
        """Return the line as it is written to the file, with references instead of long strings. Raises the error
        of its encoding, if there was one."""
        if isinstance(line, Exception):
            raise line
        if len(line) > self._limits.inline and _longest_string(line) > self._limits.inline:
            fields = codec.fields_of(line)
            fields["payload"], written = self._blobs.externalise(fields["payload"], self._limits.inline)
            self._total += written
            line = codec.line_of(fields)
        return line + b"\n"

    def _queue(self, line: bytes, *, messages: int = 0, noted: int = 0) -> None:
        if self._size + self._block.size + len(line) > self._limits.part:
            self._flush()
            self._rotate()
        self._block.add(line, messages=messages, noted=noted)

    def _flush(self) -> None:
        block, self._block = self._block, _Block()
        try:
            self._append(b"".join(block.lines))
        except OSError as error:
            self.note_lost(block.messages, _because(error))
            self.unnoted += block.noted
            return
        if self._grown is not None and block.lines:
            self._grown(self._directory.name, self._name, self._size, self._digest.hexdigest())

    def _append(self, block: bytes) -> None:
        if self._descriptor is None:
            raise OSError("the log is not open")
        done = 0
        try:
            while done < len(block):
                done += os.write(self._descriptor, block[done:])
        except OSError as error:
            # Remove the half-written line. The next line would be appended to it, and readers would find neither.
            os.ftruncate(self._descriptor, self._size)
            if not (self.ended and self._made_room(error)):
                raise
            self._append(block)
            return
        self._size += len(block)
        self._total += len(block)
        if self._grown is not None:
            self._digest.update(block)

    def _made_room(self, error: Exception) -> bool:
        """If the disk is full, delete the ballast. Return True if this made room for the last message of a task."""
        if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return False
        try:
            (self._directory.parent.parent / _BALLAST).unlink()
        except OSError:
            return False
        return True

    def _take_ballast(self) -> None:
        """Write the ballast file if it is missing and if there is room for it. Another process may do so at the
        same time."""
        place = self._directory.parent.parent / _BALLAST
        if not place.exists():
            try:
                place.parent.mkdir(mode=0o700, exist_ok=True)
                place.write_bytes(bytes(_BALLAST_BYTES))
            except OSError:
                with suppress(OSError):
                    place.unlink()

    def _opened(self, *, ballast: bool = True) -> OSError | None:
        """Open the file. Return the error if the file cannot be opened."""
        try:
            self._open(ballast=ballast)
        except OSError as error:
            return error
        return None

    def _open(self, *, ballast: bool) -> None:
        if self._descriptor is not None:
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if ballast:
            self._take_ballast()
        parts = parts_of(self._directory)
        self._part = max(0, len(parts) - 1)
        self._total = self._blobs.size() + sum(path.stat().st_size for path in parts)
        self._open_part()

    def _rotate(self) -> None:
        """Open the next part. If it cannot be opened, later messages are counted as lost."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._part += 1
        try:
            self._open_part()
        except OSError as error:
            logger.warning("task %s: part %d of its log cannot be opened: %s", self._task_id, self._part, error)

    def _open_part(self) -> None:
        path = part_path(self._directory, self._part)
        self._name = path.name
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._size = _cut_torn_line(self._descriptor)
            if self._grown is not None:
                self._hash_anew(self._descriptor)
            if self._size == 0:
                header = {HEADER_KEY: LOG_VERSION, "task_id": self._task_id, "part": self._part}
                self._append(orjson.dumps(header) + b"\n")
        except OSError:
            # Close this part, so that the next message opens it again, because readers reject a part without a
            # header.
            os.close(self._descriptor)
            self._descriptor = None
            raise

    def _hash_anew(self, descriptor: int) -> None:
        """Compute the hash of the present content of the part, which another process or an earlier opening
        wrote."""
        self._digest = hashlib.sha256()
        for start in range(0, self._size, _TAIL):
            self._digest.update(os.pread(descriptor, min(_TAIL, self._size - start), start))


def _encoded(envelope: Envelope) -> bytes | Exception:
    try:
        return codec.encode(envelope)
    except (TypeError, ValueError, RecursionError) as error:
        return error


def _longest_string(line: bytes) -> int:
    """Return an upper bound for the longest string in a line of JSON. This is a hundred times faster than parsing
    the line."""
    return max(map(len, line.replace(b'\\"', b"__").split(b'"')))


def _because(error: Exception) -> str:
    return f"the log could not be written ({type(error).__name__}: {error})"


def _cut_torn_line(descriptor: int) -> int:
    """Remove the last line if a crash left it unfinished, and return the size of the file."""
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        start = max(0, end - _TAIL)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end
