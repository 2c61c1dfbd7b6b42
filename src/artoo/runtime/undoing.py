"""Putting back what a task changed, for whoever asks for it: a command, or another program. Everything blocks."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

from artoo.contracts.changes import UndoableTask, UndoReport, printable_path
from artoo.runtime.asked import what_was_asked
from artoo.runtime.config import Config
from artoo.runtime.naming import named
from artoo.runtime.settling import keep_of
from artoo.tasklog.lock import not_running
from artoo.tasklog.reader import asked_of
from artoo.world.git_keep import is_kept_name
from artoo.world.journal import records_of
from artoo.world.pending import SettledRecord, note_settled, settled_records
from artoo.world.recover import recover
from artoo.world.undo import undo, undoable

_LISTED = 1_000

logger = logging.getLogger(__name__)


def can_be_undone(config: Config) -> tuple[UndoableTask, ...]:
    """All that is kept, after acts that a crash cut are finished or undone. Raises SandboxError."""
    recover(config.home)
    return undoable(config.home, keep_of(config))


def undoable_task(known: Sequence[UndoableTask], beginning: str) -> str:
    """The id of the one that begins so. Raises ConfigurationError when there is none, or several."""
    ids = [one.task_id for one in known]
    return named(beginning, ids, "nothing is kept of a task", "artoo undo --list shows what can be undone")


def undone_already(config: Config, known: Sequence[UndoableTask], beginning: str) -> SettledRecord | None:
    """What is on record of the one task that begins so if it was put back, and nothing of it is kept any more: also
    by a start, which had just ended an undo that was cut. None if something was left, or applied since."""
    if not beginning or any(one.task_id.startswith(beginning) for one in known):
        return None
    try:
        lines = settled_records(config.home / "views")
    except OSError:
        return None
    told = [line for line in lines if line.what in ("applied", "undone") and line.task_id.startswith(beginning)]
    last = {line.task_id: line for line in told}
    undone = [line for line in last.values() if line.what == "undone" and not line.left]
    return undone[0] if len(undone) == 1 else None


def latest_here(config: Config, known: Sequence[UndoableTask], here: str) -> UndoableTask | None:
    """The task whose act was the latest of those that were asked in a directory (an absolute printable path), or
    have changed something in it."""
    for one in sorted(known, key=lambda task: task.last_at, reverse=True):
        asked = asked_of(config.home, one.task_id)
        if asked is not None and printable_path(os.fsencode(asked.project)) == here:
            return one
        if any(path == here or path.startswith(here.rstrip("/") + "/") for path in paths_of(config, one.task_id)):
            return one
    return None


def paths_of(config: Config, task_id: str) -> tuple[str, ...]:
    """What an undo of the task would put back, as far as nobody has changed it since; printable, in order."""
    kept = (record for record in records_of(config.home / "undo", task_id) if record.done)
    steps = (step.path for record in kept if record.damage() is None for step in record.journal().steps)
    return tuple(sorted({path for path in steps if not is_kept_name(path)}))


def put_back(config: Config, task_id: str, *, by: str) -> UndoReport:
    """Undoes a task that does not run. `by` (who says so) goes on record, as of whoever applies.

    Raises TaskRunning, and SandboxError when nothing is kept or the system refuses.
    """
    with not_running(config.home, task_id):
        report = undo(config.home, task_id)
    if report.restored:
        _note(config, report, by)
    logger.info("task %s: %d paths put back, %d left (%s)", task_id, len(report.restored), len(report.refused), by)
    return report


def _note(config: Config, report: UndoReport, by: str) -> None:
    """It is on record with what was applied and discarded; where there is no room for that, it has happened too."""
    line = SettledRecord(
        at=time.time(),
        task_id=report.task_id,
        what="undone",
        by=by,
        request=what_was_asked(config.home, report.task_id),
        count=len(report.restored),
        paths=report.restored[:_LISTED],
        left=len(report.refused),
    )
    views = config.home / "views"
    try:
        views.mkdir(mode=0o700, parents=True, exist_ok=True)
        note_settled(views, line)
    except OSError as error:
        logger.warning("task %s is put back; no room to note it: %s", report.task_id, error)
