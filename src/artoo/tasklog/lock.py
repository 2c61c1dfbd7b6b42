"""The lock file of a task that runs, and the check if a task is running.

A crash of the process releases the lock.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from artoo.contracts.errors import TaskRunning
from artoo.tasklog.layout import task_directory

logger = logging.getLogger(__name__)

_NAME = "lock"
# Taking the lock is tried again, because a process that only checks the lock holds it for some microseconds.
_TRIES = 100
_APART_SECONDS = 0.001


class TaskLock:
    """The lock of a running task, which ensures that only one process runs the task. Use `take` and `release`, or
    use the lock as a context manager. Taking it costs some ten microseconds.

    The lock belongs to the open file, so a second lock in the same process is refused too. The lock file is empty,
    and it remains after the release."""

    def __init__(self, home: Path, task_id: str) -> None:
        self._home = home
        self._task_id = task_id
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises TaskRunning if the task already runs, in this process or in another one.

        If the home directory is not writable, no lock is taken. There is then no log either, so the task cannot be
        resumed by another process.
        """
        try:
            self._descriptor = _opened(task_directory(self._home, self._task_id))
            taken = _locked(self._descriptor)
        except OSError as error:
            logger.warning("task %s runs without a lock: %s", self._task_id, error)
            return
        if not taken:
            self.release()
            raise TaskRunning(
                f"task {self._task_id} is still running, in this process or another; wait for it, or end it there"
            )

    def release(self) -> None:
        """Release the lock. A second call has no effect."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _opened(directory: Path) -> int:
    """Open the lock file, and create it with its directories. Most tasks are new, and the parent directory
    exists."""
    with suppress(FileExistsError):
        try:
            os.mkdir(directory, 0o700)  # noqa: PTH102  # a third of what Path.mkdir takes, before every task
        except FileNotFoundError:
            directory.mkdir(parents=True, mode=0o700)
    return os.open(f"{directory}/{_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def is_running(directory: Path) -> bool:
    """Return whether the task with this log directory is running now, in any process. It neither waits nor
    writes."""
    try:
        descriptor = os.open(directory / _NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def not_running(home: Path, task_id: str) -> Generator[None]:
    """Return a context that holds the lock of a task, so that no process can run the task. If the task has no log,
    nothing is locked. Raises TaskRunning."""
    lock = TaskLock(home, task_id)
    if not task_directory(home, task_id).is_dir():
        yield
        return
    with lock:
        yield


def _locked(descriptor: int) -> bool:
    """Take the lock. If another process only checks the lock (with a shared lock), try again a few times."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not _shared(descriptor):
                return False
            time.sleep(_APART_SECONDS)
        else:
            return True
    return False


def _shared(descriptor: int) -> bool:
    """Return whether all present holders of the lock have only a shared lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True
