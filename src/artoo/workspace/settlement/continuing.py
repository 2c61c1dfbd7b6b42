"""A follow-up of a conversation works on what is still pending of it: on a copy, which replaces it at the end.

pending of task 1 ─ copy ─► workspace of task 2 ─► it changed more ─► one review of both; that of task 1 is deleted
                                               ├─► it changed nothing ─► the copy is deleted
                                               └─► it is cut off ─► that of task 1 is pending as before

Everything here blocks.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.workspace.copies import copy_workspace
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.service import Settlement, opened

logger = logging.getLogger(__name__)


class Continued(BaseModel):
    """The task whose pending changes a workspace began with, and their digest in the copy."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    task_id: str
    digest: str


def continue_from(artoo_home: Path, earlier: WorkspaceDirectory, target: WorkspaceDirectory, project: Path) -> bool:
    """Begin a workspace with what is pending of an earlier task. Raises SandboxError.

    False: it is not complete, it is of another project, or it conflicts with the user's files.
    """
    with opened(earlier, artoo_home) as settlement:
        if settlement is None or not _is_for(settlement, project):
            return False
        copy_workspace(earlier, target)
    begun = Continued(task_id=earlier.task_id, digest=Settlement(target, artoo_home).review().digest)
    write_whole(target.continues, begun.model_dump_json().encode(), sync=False)
    return True


def continued(directory: WorkspaceDirectory) -> Continued | None:
    """Return what a workspace began with; None if it began with the user's files alone."""
    try:
        return Continued.model_validate_json(directory.continues.read_bytes())
    except (OSError, ValidationError):
        return None


def supersede(artoo_home: Path, task_id: str) -> None:
    """Delete what is pending of an earlier task, because a later one has it. What cannot be deleted is logged."""
    directory = Workspaces(artoo_home).find(task_id)
    if directory is None:
        return
    try:
        with opened(directory, artoo_home) as settlement:
            if settlement is not None:
                settlement.forget()
    except SandboxError as error:
        logger.warning("what was pending of task %s could not be deleted: %s", task_id, error)


def _is_for(settlement: Settlement, project: Path) -> bool:
    pending = settlement.pending
    if pending is None or pending.cut_off or settlement.directory.record().roots.project != project:
        return False
    return not settlement.review().all_conflicts
