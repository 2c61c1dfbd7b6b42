"""Find, read and list task logs, and summarise a task from both ends of its log.

It also reads logs while they are written, and skips an incomplete last line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from artoo.contracts import codec
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import FinalResult
from artoo.ports.spool import Gap
from artoo.tasklog.blobs import REFERENCE_KEY, BlobStore
from artoo.tasklog.layout import (
    GAP_KEY,
    HEADER_KEY,
    LOG_VERSION,
    part_path,
    parts_of,
    task_directory,
    tasks_directory,
)
from artoo.tasklog.lock import is_running

_REFERENCE = f'"{REFERENCE_KEY}"'.encode()
_FIRST_LINES = 32
_TAIL = 256 * 1024
_FURTHER = 64 * 1024


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A short description of a task, made from its log. `result` is None if the task has not ended, because it
    still runs (`running`) or because it was interrupted."""

    task_id: str
    directory: Path
    started: datetime
    bytes: int
    request: str
    result: FinalResult | None
    running: bool = False


class TaskLogReader:
    """One task's log. The constructor raises ConfigurationError if there is no log."""

    def __init__(
        self,
        directory: Path,
        read: Callable[[int], object] = bool,
        damaged: Callable[[str], object] | None = None,
    ) -> None:
        """Open a log for reading.

        `read` is called with the number of bytes that were read since its last call. `damaged` is called for each
        unreadable line, with the place of the line and the reason. Reading then continues. If `damaged` is None,
        MessageUnreadable is raised instead.
        """
        if not part_path(directory, 0).exists():
            raise ConfigurationError(f"there is no task log in {directory}; `artoo log list` shows those there are")
        self.directory = directory
        self._read = read
        self._damaged = damaged
        self._blobs = BlobStore(directory)

    @property
    def bytes(self) -> int:
        """Return the size of all parts of the log together, in bytes."""
        return sum(path.stat().st_size for path in parts_of(self.directory))

    def task_id(self) -> str:
        """Return the task's id from the first line of the log. Raises MessageUnreadable."""
        path = part_path(self.directory, 0)
        for line in _whole_lines(path):
            fields = codec.fields_of(line)
            _check_header(fields, f"{path}, line 1")
            return str(fields.get("task_id"))
        raise MessageUnreadable(f"{path} is empty: the task died before it said anything; run the request again")

    def __iter__(self) -> Iterator[Envelope | Gap]:
        """Iterate over all messages in order, with a Gap wherever messages are missing.

        Raises MessageUnreadable, which names the line.
        """
        return self.select(None)

    def envelopes(self) -> Iterator[Envelope]:
        """Iterate over all messages in order, without gaps."""
        return (item for item in self if isinstance(item, Envelope))

    def select(self, kinds: Collection[str] | None) -> Iterator[Envelope | Gap]:
        """Iterate over the gaps and over the messages of these kinds, in order. If `kinds` is None, all messages
        are included. Raises MessageUnreadable, which names the line.
        """
        for place, fields in self.fields(kinds):
            gap = fields.get(GAP_KEY)
            if isinstance(gap, dict):
                yield _gap(cast("dict[str, object]", gap))
                continue
            try:
                yield codec.from_fields(fields)
            except MessageUnreadable as error:
                self._unreadable(place, error)

    def fields(self, kinds: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, object]]]:
        """Iterate over all lines except headers as parsed JSON, with the long strings that are stored next to the
        log. The place of each line is given as text.

        With `kinds`, only messages of these kinds and gaps are returned."""
        for path in parts_of(self.directory):
            for number, line in enumerate(_whole_lines(path), 1):
                place = f"{path}, line {number}"
                self._read(len(line) + 1)
                try:
                    fields = codec.fields_of(line)
                except MessageUnreadable as error:
                    if number == 1:  # The version of an unreadable header is unknown.
                        raise MessageUnreadable(f"{place}: {error}") from error
                    self._unreadable(place, error)
                    continue
                if number == 1:
                    _check_header(fields, place)
                    continue
                if kinds is not None and fields.get("kind") not in kinds and GAP_KEY not in fields:
                    continue
                yield place, _whole(line, fields, self._blobs)

    def _unreadable(self, place: str, error: MessageUnreadable) -> None:
        said = f"{place}: {error}"
        if self._damaged is None:
            raise MessageUnreadable(said) from error
        self._damaged(said)


def find_log(home: Path, task_id: str) -> TaskLogReader:
    """Return the log of a task, given the task's id or a prefix of it that no other id has. Raises
    ConfigurationError."""
    directory = task_directory(home, task_id)
    if part_path(directory, 0).exists():
        return TaskLogReader(directory)
    matching = sorted(path for path in _task_directories(home) if task_id and path.name.startswith(task_id))
    if len(matching) == 1:
        return TaskLogReader(matching[0])
    if not matching:
        raise ConfigurationError(
            f"no task {task_id!r} in {tasks_directory(home)}; `artoo log list` shows all tasks"
        )
    names = ", ".join(path.name for path in matching[:5])
    names += ", …" if len(matching) > 5 else ""
    raise ConfigurationError(f"{task_id!r} is the beginning of {len(matching)} tasks ({names}); give more of it")


def has_ended(directory: Path) -> bool:
    """Return whether the log in `directory` contains the result of its task. Only the end of the log is read."""
    parts = parts_of(directory)
    return bool(parts) and _result(parts[-1], BlobStore(directory)) is not None


def list_tasks(home: Path, limit: int | None = None) -> list[TaskSummary]:
    """Return the summaries of the tasks, latest task first. Only the beginning and the end of each log are read.
    Unreadable logs are left out."""
    newest_first = sorted(_task_directories(home), key=_last_written, reverse=True)
    summaries = [summary for path in newest_first[:limit] if (summary := summary_in(path)) is not None]
    return sorted(summaries, key=lambda summary: summary.started, reverse=True)


def request_of(home: Path, task_id: str) -> str:
    """Return the text of a task's request from its log. Return an empty text if there is no readable log with a
    request."""
    asked = asked_of(home, task_id)
    return "" if asked is None else asked.text


def asked_of(home: Path, task_id: str) -> UserRequest | None:
    """Return the request of a task from its log. Return None if there is no readable log with a request."""
    try:
        parts = parts_of(task_directory(home, task_id))
        head = _readable(_head(parts[0]), BlobStore(parts[0].parent)) if parts else iter(())
        return next((one.payload for one in head if isinstance(one.payload, UserRequest)), None)
    except (OSError, ConfigurationError):
        return None


def summary_of(home: Path, task_id: str) -> TaskSummary | None:
    """Return the summary of a task, for which only the beginning and the end of its log are read. Return None if
    there is no readable log."""
    return summary_in(task_directory(home, task_id))


def _task_directories(home: Path) -> list[Path]:
    root = tasks_directory(home)
    if not root.is_dir():
        return []
    return [path for path in root.iterdir() if not path.name.startswith(".") and part_path(path, 0).exists()]


def _last_written(directory: Path) -> float:
    """Return the time at which the log was written last. Return 0 if the log is unreadable or has just been
    deleted."""
    try:
        parts = parts_of(directory)
        return parts[-1].stat().st_mtime if parts else 0.0
    except OSError:
        return 0.0


def summary_in(directory: Path) -> TaskSummary | None:
    """Return the summary of the task whose log is in `directory`. Return None if it cannot be read."""
    try:
        return _summary(directory)
    except OSError:
        return None


def _summary(directory: Path) -> TaskSummary | None:
    parts = parts_of(directory)
    if not parts:
        return None
    blobs = BlobStore(directory)
    first: Envelope | None = None
    request = ""
    for envelope in _readable(_head(parts[0]), blobs):
        first = first or envelope
        if isinstance(envelope.payload, UserRequest):
            request = envelope.payload.text
            break
    if first is None:
        return None
    return TaskSummary(
        task_id=first.task_id,
        directory=directory,
        started=first.at,
        bytes=blobs.size() + sum(path.stat().st_size for path in parts),
        request=request,
        result=_result(parts[-1], blobs),
        running=is_running(directory),
    )


def _result(last_part: Path, blobs: BlobStore) -> FinalResult | None:
    newest_first = _readable(reversed(_tail(last_part)), blobs)
    last = next((e.payload for e in newest_first if isinstance(e.payload, (FinalResult, TaskResumed))), None)
    return last if isinstance(last, FinalResult) else None


def _whole(line: bytes, fields: dict[str, object], blobs: BlobStore) -> dict[str, object]:
    if _REFERENCE in line and "payload" in fields:
        fields["payload"] = blobs.internalise(fields["payload"])
    return fields


def _readable(lines: Iterable[bytes], blobs: BlobStore) -> Iterator[Envelope]:
    """Return the envelopes among the lines. Unreadable lines are skipped, so that tasks can still be listed."""
    for line in lines:
        try:
            yield codec.from_fields(_whole(line, codec.fields_of(line), blobs))
        except MessageUnreadable:
            continue


def _head(path: Path) -> list[bytes]:
    lines: list[bytes] = []
    for line in _whole_lines(path):
        lines.append(line)
        if len(lines) == _FIRST_LINES:
            break
    return lines


def _tail(path: Path) -> list[bytes]:
    """Return the whole lines at the end of a log: those in the last `_TAIL` bytes, and the line that begins before
    them."""
    with path.open("rb") as file:
        start = file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        kept, begun = [file.read()], start == 0
        while not begun:
            step = min(start, _FURTHER)
            start = file.seek(start - step)
            _, newline, rest = file.read(step).rpartition(b"\n")
            kept.append(rest)
            begun = bool(newline) or start == 0
    return b"".join(reversed(kept)).split(b"\n")[:-1]


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _check_header(fields: dict[str, object], place: str) -> None:
    if fields.get(HEADER_KEY) != LOG_VERSION:
        raise MessageUnreadable(
            f"{place}: this is no task log of version {LOG_VERSION} (its header says {fields.get(HEADER_KEY)!r}); "
            "read it with the artoo that wrote it, or a newer one"
        )


def _gap(fields: dict[str, object]) -> Gap:
    count = fields.get("count")
    return Gap(count if isinstance(count, int) else 0, (), str(fields.get("reason", "")))
