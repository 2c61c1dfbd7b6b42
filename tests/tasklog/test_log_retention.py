"""Old task logs are forgotten, and none that is still needed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from log_doubles import task, write

from artoo import Config
from artoo.bus.spool import SpoolFile
from artoo.runtime.changes.startup_recovery import forget_old_logs, remove_left_spools
from artoo.tasklog import retention
from artoo.tasklog.layout import task_directory, tasks_directory
from artoo.tasklog.lock import TaskLock
from artoo.tasklog.retention import Forgotten, KeepLogs, forget_logs

DAY = 86_400.0
NOW = time.time()
MUCH = 1 << 40


async def logged(
    home: Path, name: str, *, days: float, ended: bool = True, size: int = 0, looked: float | None = 5
) -> Path:
    """The log of a task that was last written `days` ago; `size` bytes of blobs beside it.

    It was found too old `looked` days ago; None: nobody has looked.
    """
    envelopes = task(name)
    await write(home, envelopes if ended else envelopes[:-1])
    directory = task_directory(home, name)
    if size:
        (directory / "blobs").mkdir(exist_ok=True)
        (directory / "blobs" / ("0" * 64)).write_bytes(b"x" * size)
    written = NOW - days * DAY
    for path in directory.rglob("*"):
        os.utime(path, (written, written))
    for mark in ("old", "cut") if looked is not None else ():
        (directory / mark).touch()
        seen = NOW - (looked or 0) * DAY
        os.utime(directory / mark, (seen, seen))
    return directory


def left(home: Path) -> set[str]:
    return {path.name for path in tasks_directory(home).iterdir()}


async def test_old_logs_go_by_age(tmp_path: Path) -> None:
    """What was last written longer ago than the days say is removed, blobs and all; the rest stays."""
    await logged(tmp_path, "old", days=31, size=1_000)
    await logged(tmp_path, "new", days=29)
    forgotten = forget_logs(tmp_path, KeepLogs(30, MUCH), NOW)
    assert (forgotten.logs, forgotten.finished) == (1, True)
    assert forgotten.bytes > 1_000
    assert left(tmp_path) == {"new"}


async def test_a_clock_that_is_wrong_for_a_while_loses_nothing(tmp_path: Path) -> None:
    """Years ahead everything is too old, at every start of two days; when the clock is right again all is there."""
    for number in range(3):
        await logged(tmp_path, f"t{number}", days=number, ended=number > 0, size=1_000, looked=None)
    ahead = NOW + 10 * 365 * DAY
    for later in (0.0, 0.5, 1.0, 2.0):
        assert forget_logs(tmp_path, KeepLogs(30, MUCH), ahead + later * DAY) == Forgotten()
    assert forget_logs(tmp_path, KeepLogs(30, MUCH), NOW + DAY) == Forgotten()
    assert forget_logs(tmp_path, KeepLogs(30, MUCH), ahead + 4 * DAY) == Forgotten()
    assert forget_logs(tmp_path, KeepLogs(30, MUCH), ahead + 7 * DAY).logs == 3


async def test_a_clock_that_is_wrong_leaves_what_could_be_resumed(tmp_path: Path) -> None:
    """What was cut off yesterday does not go for room because the clock says years."""
    await logged(tmp_path, "cut", days=1, ended=False, size=1_000, looked=None)
    await logged(tmp_path, "ended", days=1, size=1_000, looked=None)
    forget_logs(tmp_path, KeepLogs(30, 1), NOW + 10 * 365 * DAY)
    assert left(tmp_path) == {"cut"}


async def test_on_a_full_disk_ended_logs_go_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that cannot be noted makes nothing old, and keeps nothing from going that may."""
    await logged(tmp_path, "old", days=31, looked=None)
    await logged(tmp_path, "cut", days=31, ended=False, looked=None)

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", no_room)
    assert forget_logs(tmp_path, KeepLogs(30, MUCH), NOW).logs == 0
    assert forget_logs(tmp_path, KeepLogs(30, 1), NOW).logs == 1
    assert left(tmp_path) == {"cut"}


async def test_the_oldest_go_for_room(tmp_path: Path) -> None:
    """While all logs together are too large, the oldest go, and no more of them than needed."""
    for number in range(5):
        await logged(tmp_path, f"t{number}", days=5 - number, size=100_000)
    assert forget_logs(tmp_path, KeepLogs(365, 320_000), NOW).logs == 2
    assert left(tmp_path) == {"t2", "t3", "t4"}


async def test_what_could_be_resumed_stays(tmp_path: Path) -> None:
    """A task without an end keeps its log although room is needed, until nobody would resume it any more."""
    await logged(tmp_path, "lately", days=3, ended=False, size=100_000)
    await logged(tmp_path, "long_ago", days=20, ended=False, size=100_000)
    await logged(tmp_path, "ended", days=2, size=100_000)
    forget_logs(tmp_path, KeepLogs(365, 1), NOW)
    assert left(tmp_path) == {"lately"}


async def test_a_running_task_keeps_its_log(tmp_path: Path) -> None:
    """A task that runs, in whichever process, keeps its log however old that is."""
    await logged(tmp_path, "running", days=400, ended=False)
    with TaskLock(tmp_path, "running"):
        assert forget_logs(tmp_path, KeepLogs(30, 1), NOW).logs == 0
    assert forget_logs(tmp_path, KeepLogs(30, 1), NOW).logs == 1


async def test_a_pass_is_bounded_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When there is too much for one start, the rest is left for the next."""
    monkeypatch.setattr(retention, "MOST_SECONDS", -1.0)
    await logged(tmp_path, "old", days=31)
    assert forget_logs(tmp_path, KeepLogs(30, MUCH), NOW) == Forgotten(finished=False)


async def test_a_start_forgets_by_the_configuration(tmp_path: Path) -> None:
    """The days of the configuration hold, and a home without logs is no error."""
    config = Config.model_validate({"log": {"keep_days": 10}}).at_home(tmp_path)
    await forget_old_logs(config)
    await logged(tmp_path, "old", days=11)
    await logged(tmp_path, "new", days=9)
    await forget_old_logs(config)
    assert left(tmp_path) == {"new"}


def test_spools_of_killed_processes_go(tmp_path: Path) -> None:
    """What a killed process left behind is removed at the next start; the spool of a living one is not."""
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = tmp_path / "spool" / f"spool-stream-01980000-0000-7000-{int(process.stdout)}-abc_123.jsonl"
    own = SpoolFile(tmp_path / "spool", "tasklog", 1_000)
    own.append(b"{}\n")
    left.write_bytes(b"x")
    assert remove_left_spools(tmp_path) == 1
    assert not left.exists()
    assert own.path is not None and own.path.exists()
    own.close()
    assert remove_left_spools(tmp_path / "nowhere") == 0
