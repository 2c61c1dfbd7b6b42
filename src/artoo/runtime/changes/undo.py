"""List tasks that can be undone, and undo one of them, for commands and other programs.

All functions here block.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

from artoo.contracts.changes import UndoableTask, UndoReport, printable_path
from artoo.runtime.app.task_ids import named
from artoo.runtime.changes.request_lookup import what_was_asked
from artoo.runtime.changes.startup_recovery import keep_of, recover_earlier
from artoo.runtime.config.model import Config
from artoo.tasklog.lock import not_running
from artoo.tasklog.reader import asked_of
from artoo.workspace.commit import records_of, undo, undoable
from artoo.workspace.settlement.history import LISTED, SettledRecord, note_settled, settled_records

logger = logging.getLogger(__name__)


def can_be_undone(config: Config) -> tuple[UndoableTask, ...]:
    """Return all tasks that can be undone. Before that, interrupted operations are recovered. Raises
    SandboxError."""
    recover_earlier(config)
    return undoable(config.home, keep_of(config))


def undoable_task(known: Sequence[UndoableTask], beginning: str) -> str:
    """Return the only id that begins with `beginning`. Raises ConfigurationError if no id begins with it, or if
    several do."""
    ids = [one.task_id for one in known]
    return named(beginning, ids, "nothing can be undone of a task", "artoo undo --list shows what can be")


def undone_already(config: Config, known: Sequence[UndoableTask], beginning: str) -> SettledRecord | None:
    """Return the undo record of the only matching task, if that task was undone completely and not applied again
    since."""
    # This start may itself have completed an undo that a crash had interrupted.
    if not beginning or any(one.task_id.startswith(beginning) for one in known):
        return None
    try:
        lines = settled_records(config.home)
    except OSError:
        return None
    told = [line for line in lines if line.what in ("applied", "undone") and line.task_id.startswith(beginning)]
    last = {line.task_id: line for line in told}
    undone = [line for line in last.values() if line.what == "undone" and not line.left]
    return undone[0] if len(undone) == 1 else None


def latest_here(config: Config, known: Sequence[UndoableTask], here: str) -> UndoableTask | None:
    """Return the task that was applied last, among the tasks that were requested in the directory `here` or have
    changed files in it.

    `here` is an absolute printable path.
    """
    for one in sorted(known, key=lambda task: task.last_at, reverse=True):
        asked = asked_of(config.home, one.task_id)
        if asked is not None and printable_path(os.fsencode(asked.project)) == here:
            return one
        if any(path == here or path.startswith(here.rstrip("/") + "/") for path in paths_of(config, one.task_id)):
            return one
    return None


def paths_of(config: Config, task_id: str) -> tuple[str, ...]:
    """Return the paths that an undo restores unless the user has changed them since, printable and sorted."""
    kept = (record for record in records_of(config.home / "undo", task_id) if record.done)
    manifests = [record.manifest() for record in kept]
    files = {step.path for manifest in manifests for step in manifest.steps}
    return tuple(sorted(files | {path for manifest in manifests for act in manifest.git for path in act.paths}))


def put_back(config: Config, task_id: str, *, by: str) -> UndoReport:
    """Undo a task that is not running. `by`: who asked for the undo, which is recorded.

    Raises TaskRunning if the task is running. Raises SandboxError if nothing can be undone or the system refuses.
    """
    with not_running(config.home, task_id):
        report = undo(config.home, task_id)
    if report.restored:
        _note(config, report, by)
    logger.info("task %s: %d paths restored, %d left (%s)", task_id, len(report.restored), len(report.refused), by)
    return report


def _note(config: Config, report: UndoReport, by: str) -> None:
    """Add the undo to the history of applied and discarded changes."""
    # If the line cannot be written, the undo has nevertheless happened, so the error is only logged.
    line = SettledRecord(
        at=time.time(),
        task_id=report.task_id,
        what="undone",
        by=by,
        request=what_was_asked(config.home, report.task_id),
        count=len(report.restored),
        paths=report.restored[:LISTED],
        left=len(report.refused),
    )
    try:
        note_settled(config.home, line)
    except OSError as error:
        logger.warning("task %s is undone; no room to record it: %s", report.task_id, error)
