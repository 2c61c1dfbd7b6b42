"""A follow-up of a conversation works on what is still pending of it: on a copy, which replaces it at the end.

pending of task 1 ──copy──► workspace of task 2 ──► task 2 ends ──► one review of both; that of task 1 is deleted
                                               └──► task 2 is cut off ──► that of task 1 is pending as before
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.contracts.request import Turn
from artoo.contracts.solution import FinalResult
from artoo.disk.whole import write_whole
from artoo.runtime.changes.submissions import writing
from artoo.workspace.copies import copy_workspace
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.service import Settlement, opened

logger = logging.getLogger(__name__)

_CONTINUES = "continues"
"""The file of a workspace that names the task whose changes it began with."""


def continue_pending(home: Path, history: Sequence[Turn], project: Path, task_id: str) -> str:
    """Begin a task's workspace with what is pending of its conversation; return the earlier task's id. Blocking.

    Empty: nothing is pending in this project, it conflicts with the user's files, or it cannot be copied.
    """
    workspaces = Workspaces(home)
    for turn in reversed(history):
        earlier = None if turn.task_id is None else workspaces.find(turn.task_id)
        if turn.task_id is None or earlier is None:
            continue
        try:
            return turn.task_id if _copied(home, earlier, workspaces.directory(task_id), project) else ""
        except SandboxError as error:
            logger.info("task %s works without what is pending of %s: %s", task_id, turn.task_id, error)
            return ""
    return ""


def continued(home: Path, task_id: str) -> str:
    """Return the id of the task whose pending changes this task began with; empty if there is none. Blocking."""
    try:
        return (Workspaces(home).directory(task_id).base / _CONTINUES).read_text(encoding="utf-8")
    except OSError:
        return ""


def supersede(home: Path, earlier: str, result: FinalResult) -> None:
    """Delete what was pending of the earlier task, unless the task that took it over can still go on. Blocking."""
    directory = Workspaces(home).find(earlier)
    if directory is None or (result.stopped_by is not None and result.stopped_by.is_infrastructure):
        return
    try:
        with opened(directory, home) as settlement:
            if settlement is not None:
                settlement.forget()
    except SandboxError as error:
        logger.warning("what task %s took over is still pending: %s", result.task_id, error)


def _copied(home: Path, earlier: WorkspaceDirectory, target: WorkspaceDirectory, project: Path) -> bool:
    with writing(target.base), opened(earlier, home) as settlement:
        if settlement is None or not _is_for(settlement, project):
            return False
        copy_workspace(earlier, target)
        write_whole(target.base / _CONTINUES, earlier.task_id.encode(), sync=False)
        return True


def _is_for(settlement: Settlement, project: Path) -> bool:
    """True if the changes are complete, of this project, and fit to the user's files."""
    pending = settlement.pending
    if pending is None or pending.cut_off or settlement.directory.record().roots.project != project:
        return False
    return not settlement.review().all_conflicts
