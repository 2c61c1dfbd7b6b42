"""Carry over the pending changes of a conversation to its next task."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.contracts.request import Turn
from artoo.runtime.changes.submissions import writing
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.continuing import continue_from

logger = logging.getLogger(__name__)


def continue_pending(home: Path, history: Sequence[Turn], project: Path, task_id: str) -> str:
    """Start the workspace of a task with the latest pending changes of its conversation. Blocking.

    Return the id of the task that made these changes. Return "" if nothing is pending or the changes cannot be
    carried over.
    """
    workspaces = Workspaces(home)
    for turn in reversed(history):
        earlier = None if turn.task_id is None else workspaces.find(turn.task_id)
        if turn.task_id is None or earlier is None:
            continue
        target = workspaces.directory(task_id)
        try:
            with writing(target.base):
                return turn.task_id if continue_from(home, earlier, target, project) else ""
        except SandboxError as error:
            logger.info("task %s works without what is pending of %s: %s", task_id, turn.task_id, error)
            return ""
    return ""
