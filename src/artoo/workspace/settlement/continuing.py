"""Continue a follow-up task from pending changes, on a copy that replaces them at the end.

All functions block.
                                               ├─► no changes ─► the copy is deleted
                                               └─► interrupted ─► the changes of task 1 stay pending

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
    """The task whose pending changes were copied into a new workspace, and the digest of these changes in the
    copy."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    task_id: str
    digest: str


def continue_from(artoo_home: Path, earlier: WorkspaceDirectory, target: WorkspaceDirectory, project: Path) -> bool:
    """Begin a workspace with the pending changes of an earlier task. Raises SandboxError.

    Returns False if the earlier changes are incomplete, belong to another project, or conflict with the user's
    files.
    """
    with opened(earlier, artoo_home) as settlement:
        if settlement is None or not _is_for(settlement, project):
            return False
        copy_workspace(earlier, target)
    begun = Continued(task_id=earlier.task_id, digest=Settlement(target, artoo_home).review().digest)
    write_whole(target.continues, begun.model_dump_json().encode(), sync=False)
    return True


def continued(directory: WorkspaceDirectory) -> Continued | None:
    """Return the pending changes with which a workspace began. Return None if it began without any."""
    try:
        return Continued.model_validate_json(directory.continues.read_bytes())
    except (OSError, ValidationError):
        return None


def supersede(artoo_home: Path, task_id: str) -> None:
    """Delete the pending changes of an earlier task, because a later task includes them. A failure is only
    logged."""
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
