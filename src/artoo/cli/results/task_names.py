"""The short names of tasks, which are unique beginnings of ids.

A name is a beginning of the task's id that is as short as possible and still unique.
"""

from __future__ import annotations

from pathlib import Path

from artoo.runtime.app.task_ids import short_name

ID_SHOWN = 13
"""Number of characters of an id in a list. They contain the whole time stamp of a UUIDv7."""


def name_at(home: Path, task_id: str) -> str:
    """Return the shortest beginning of a task's id that no other task has. The other tasks are those that are
    pending, logged or can be undone."""
    from artoo.tasklog.layout import tasks_directory
    from artoo.workspace.commit import tasks_with_records
    from artoo.workspace.directory import Workspaces

    logs = tasks_directory(home)
    logged = [entry.name for entry in logs.iterdir()] if logs.is_dir() else []
    pending = [directory.task_id for directory in Workspaces(home).listed()]
    return short_name(task_id, [*tasks_with_records(home), *pending, *logged])


def tasks_at(home: Path, most: int) -> list[str]:
    """List the names of the latest tasks, latest first."""
    from artoo.tasklog.layout import tasks_directory

    logs = tasks_directory(home)
    known = sorted((entry.name for entry in logs.iterdir()), reverse=True) if logs.is_dir() else []
    return [short_name(task_id, known) for task_id in known[:most]]
