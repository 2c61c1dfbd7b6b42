"""The lock of a task: one process runs it, everybody else is told."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from artoo.contracts.errors import TaskRunning
from artoo.tasklog.layout import task_directory
from artoo.tasklog.lock import TaskLock, is_running, not_running

_HOLDER = (
    "import sys; from pathlib import Path; from artoo.tasklog.lock import TaskLock\n"
    "TaskLock(Path(sys.argv[1]), 't').take(); print('taken', flush=True); sys.stdin.read()"
)


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    """A task runs once: a second lock fails with what to do about it, and works when the first is gone."""
    with TaskLock(tmp_path, "t"):
        assert is_running(task_directory(tmp_path, "t"))
        with pytest.raises(TaskRunning, match="task t is still running"):
            TaskLock(tmp_path, "t").take()
        with TaskLock(tmp_path, "another"):
            pass
    assert not is_running(task_directory(tmp_path, "t"))
    with TaskLock(tmp_path, "t"):
        pass


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    """kill -9 releases the lock; while the process lives it is refused elsewhere."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "taken\n"
        assert is_running(task_directory(tmp_path, "t"))
        with pytest.raises(TaskRunning), not_running(tmp_path, "t"):
            pytest.fail("the task runs")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with TaskLock(tmp_path, "t"):
        pass


def test_looking_refuses_nobody(tmp_path: Path) -> None:
    """While others look all the time whether it runs, a task can always be started."""
    with TaskLock(tmp_path, "t"):
        pass
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            is_running(task_directory(tmp_path, "t"))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(300):
            with TaskLock(tmp_path, "t"):
                pass
    finally:
        ended.set()
        watcher.join()


def test_a_home_without_room_runs_without_a_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where no lock can be made the task runs all the same, and the reason is logged."""
    (tmp_path / "tasks").write_text("in the way")
    with TaskLock(tmp_path, "t"):
        assert "runs without a lock" in caplog.text
