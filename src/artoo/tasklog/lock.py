"""Lock a task next to its log while a process runs it. The lock is released however the process dies."""

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
# A process that only looks holds the lock for some microseconds, which is no reason to refuse.
_TRIES = 100
_APART_SECONDS = 0.001


class TaskLock:
    """The right to run a task. `take` and `release`, or a context manager. Costs some ten microseconds.

    The lock belongs to the open file, so a second one in the same process is refused too. The file stays, empty.
    """

    def __init__(self, home: Path, task_id: str) -> None:
        self._home = home
        self._task_id = task_id
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises TaskRunning if the task runs already, in this process or another.

        Where the home cannot be written there is no lock; there is no log either that could be resumed.
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
        """Release the lock. Idempotent."""
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
    """Open the lock file, and create it with its directories. Most tasks are new, and their parent exists."""
    with suppress(FileExistsError):
        try:
            os.mkdir(directory, 0o700)  # noqa: PTH102  # a third of what Path.mkdir takes, before every task
        except FileNotFoundError:
            directory.mkdir(parents=True, mode=0o700)
    return os.open(f"{directory}/{_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def is_running(directory: Path) -> bool:
    """Check whether the task with this log directory runs now, in any process. Never waits, leaves nothing."""
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
    """Hold the lock of a task, if it has a log, so that no process runs it. Raises TaskRunning."""
    lock = TaskLock(home, task_id)
    if not task_directory(home, task_id).is_dir():
        yield
        return
    with lock:
        yield


def _locked(descriptor: int) -> bool:
    """Take the lock. A lock that another process only looks at (shared) is tried again a few times."""
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
    """Check whether the holders of the lock only look."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return True
