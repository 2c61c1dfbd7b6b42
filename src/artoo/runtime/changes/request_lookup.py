"""Look up the request of a task whose changes are pending or were applied."""

from __future__ import annotations

from pathlib import Path

from artoo.tasklog.reader import request_of
from artoo.workspace.settlement.history import settled_records


def what_was_asked(home: Path, task_id: str) -> str:
    """Return the request from the task's log, from the board, or from the history. Return "" if none of them
    contains it. Blocking.

    A board task has no log under its own id, because each attempt at it has a log of its own. A single command has
    no log.
    """
    return request_of(home, task_id) or asked_on_the_board(home, task_id) or _settled(home, task_id)


def asked_on_the_board(home: Path, task_id: str) -> str:
    """Return the text of a board task that was worked on here; empty for any other task. Blocking."""
    from artoo.runtime.changes.submissions import Submissions

    return Submissions(home).asked(task_id)


def _settled(home: Path, task_id: str) -> str:
    try:
        records = settled_records(home)
    except OSError:
        return ""
    return next((one.request for one in reversed(records) if one.task_id == task_id and one.request), "")
