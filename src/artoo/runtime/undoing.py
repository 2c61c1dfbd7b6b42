"""Putting back what a task changed, for whoever asks for it: a command, or another program. Everything blocks."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from artoo.contracts.changes import UndoableTask, UndoReport
from artoo.runtime.config import Config
from artoo.runtime.naming import named
from artoo.runtime.settling import keep_of
from artoo.tasklog.lock import not_running
from artoo.world.recover import recover
from artoo.world.undo import undo, undoable

logger = logging.getLogger(__name__)


def can_be_undone(config: Config) -> tuple[UndoableTask, ...]:
    """All that is kept, after acts that a crash cut are finished or undone. Raises SandboxError."""
    recover(config.home)
    return undoable(config.home, keep_of(config))


def undoable_task(known: Sequence[UndoableTask], beginning: str) -> str:
    """The id of the one that begins so. Raises ConfigurationError when there is none, or several."""
    ids = [one.task_id for one in known]
    return named(beginning, ids, "nothing is kept of a task", "artoo undo --list shows what can be undone")


def put_back(config: Config, task_id: str, *, by: str) -> UndoReport:
    """Undoes a task that does not run. `by` (who says so) goes into Python's log.

    Raises TaskRunning, and SandboxError when nothing is kept or the system refuses.
    """
    with not_running(config.home, task_id):
        report = undo(config.home, task_id)
    logger.info("task %s: %d paths put back, %d left (%s)", task_id, len(report.restored), len(report.refused), by)
    return report
