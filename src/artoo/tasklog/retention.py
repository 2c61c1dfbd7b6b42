"""Delete old task logs by age and total size, and keep resumable logs for some days.

Call these functions in a worker thread.

Logs that are still needed are kept whatever their size. These are the logs of running tasks, and of tasks that were
interrupted recently and could be resumed. A log is renamed before it is deleted, so that no reader finds half a
log.

A log is only deleted for its age if an earlier pass, days ago, found it too old as well, so that a temporarily
wrong clock deletes nothing. The earlier pass leaves a mark file in the log's directory (`old`, `cut`), which a
later pass removes if it finds the log young enough.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import TaskRunning
from artoo.tasklog.layout import parts_of, tasks_directory
from artoo.tasklog.lock import TaskLock, is_running
from artoo.tasklog.reader import has_ended

logger = logging.getLogger(__name__)

DAY_SECONDS = 86_400.0
# Days for which the log of a task that did not end is kept, even if room is needed.
RESUMABLE_DAYS = 14.0
# A log that was written within this time is never removed to make room, because a user may be about to read it.
UNTOUCHED_SECONDS = 3_600.0
# Minimum time between the pass that first finds a log too old and the pass that removes it.
NOTICE_SECONDS = 3 * DAY_SECONDS
# Time limit of a pass. The next pass, at the next start of artoo, removes the remaining logs.
MOST_SECONDS = 2.0

_GOING = ".going-"
_OLD, _CUT = "old", "cut"


@dataclass(frozen=True, slots=True)
class KeepLogs:
    """The number of days for which logs are kept, and the limit for the bytes of all logs together."""

    days: float
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The logs that a pass removed. `finished` is False if the pass stopped at its time limit. `names` contains the
    names of the removed directories."""

    logs: int = 0
    bytes: int = 0
    finished: bool = True
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Log:
    directory: Path
    written: float
    size: int


def forget_logs(home: Path, keep: KeepLogs, now: float | None = None) -> Forgotten:
    """Remove the logs that are too old or too large according to `keep`.

    `now` is in seconds since the epoch; the default is the present time. Raises OSError."""
    moment = time.time() if now is None else now
    ends = time.monotonic() + MOST_SECONDS
    _finish_earlier(home)
    logs = sorted(_logs(home), key=lambda log: log.written)
    total = sum(log.size for log in logs)
    removed: list[str] = []
    freed = 0
    for log in logs:
        if time.monotonic() > ends:
            return Forgotten(len(removed), freed, finished=False, names=tuple(removed))
        old = _long_over(log, _OLD, keep.days, moment)
        resumable = not _long_over(log, _CUT, RESUMABLE_DAYS, moment)
        if not old and (total <= keep.total_bytes or _needed(log, moment, resumable)):
            continue
        if _remove(home, log):
            total -= log.size
            freed += log.size
            removed.append(log.directory.name)
    return Forgotten(len(removed), freed, names=tuple(removed))


def _logs(home: Path) -> list[_Log]:
    """Return the directories of all logs, each with its age and size. A directory that vanishes in the meantime is
    left out."""
    root = tasks_directory(home)
    if not root.is_dir():
        return []
    found: list[_Log] = []
    for entry in os.scandir(root):
        if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
            continue
        try:
            found.append(_measured(Path(entry.path)))
        except OSError:  # The directory has vanished in the meantime, or it belongs to another user.
            continue
    return found


def _measured(directory: Path) -> _Log:
    parts = parts_of(directory)
    written = parts[-1].stat().st_mtime if parts else directory.stat().st_mtime
    size = 0
    for folder in (directory, directory / "blobs", directory / "images"):
        if folder.is_dir():
            size += sum(
                entry.stat().st_size for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)
            )
    return _Log(directory, written, size)


def _long_over(log: _Log, mark: str, days: float, now: float) -> bool:
    """Return whether the log is older than `days` now, and was so in an earlier pass at least NOTICE_SECONDS ago.
    The file `mark` records that pass."""
    path = log.directory / mark
    try:
        if log.written >= now - days * DAY_SECONDS:
            path.unlink(missing_ok=True)
            return False
        if not path.exists():
            path.touch(mode=0o600)
            os.utime(path, (now, now))
        return path.stat().st_mtime + NOTICE_SECONDS <= now
    # There was no room for the mark file, or the log has just been deleted. A later pass tries again.
    except OSError:
        return False


def _needed(log: _Log, now: float, resumable: bool) -> bool:
    """Return whether a log must be kept although room is needed, given that it is not too old."""
    return now - log.written < UNTOUCHED_SECONDS or (resumable and not has_ended(log.directory))


def _remove(home: Path, log: _Log) -> bool:
    """Remove a log. Return False if the task is running, or if the log has vanished or belongs to another user."""
    if is_running(log.directory):
        return False
    going = log.directory.with_name(f"{_GOING}{log.directory.name}")
    try:
        with TaskLock(home, log.directory.name):
            log.directory.rename(going)
    except (TaskRunning, FileNotFoundError, PermissionError):
        return False
    shutil.rmtree(going, ignore_errors=True)
    return True


def _finish_earlier(home: Path) -> None:
    """Remove the logs that an earlier pass had renamed before it was interrupted."""
    for left in tasks_directory(home).glob(f"{_GOING}*"):
        shutil.rmtree(left, ignore_errors=True)
