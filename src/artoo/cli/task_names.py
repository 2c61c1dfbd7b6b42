"""How a task is named by a person: the beginning of its id, as short as it may be, or nothing for the latest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from artoo.contracts.errors import ConfigurationError

SHORTEST = 4
"""Characters of an id that are shown at least."""


def short_name(task_id: str, among: Collection[str]) -> str:
    """The shortest beginning of an id that no other of these ids has: enough to name it now."""
    others = [other for other in among if other != task_id]
    for length in range(SHORTEST, len(task_id)):
        if not any(other.startswith(task_id[:length]) for other in others):
            return task_id[:length]
    return task_id


def name_at(home: Path, task_id: str) -> str:
    """The shortest that names it to every command: no other task that waits, has a log or can be undone."""
    from artoo.tasklog.layout import tasks_directory
    from artoo.world.undo import acted
    from artoo.world.view_place import Views

    logs = tasks_directory(home)
    logged = [entry.name for entry in logs.iterdir()] if logs.is_dir() else []
    return short_name(task_id, [*acted(home), *(place.task_id for place in Views(home).listed()), *logged])


def tasks_at(home: Path, most: int) -> list[str]:
    """The names of the latest tasks, latest first."""
    from artoo.tasklog.layout import tasks_directory

    logs = tasks_directory(home)
    known = sorted((entry.name for entry in logs.iterdir()), reverse=True) if logs.is_dir() else []
    return [short_name(task_id, known) for task_id in known[:most]]


def named(beginning: str, known: Sequence[str], nothing: str, where: str) -> str:
    """The one id that begins so. Raises ConfigurationError when there is none (`nothing`) or more than one.

    `where` says how to see which there are.
    """
    if beginning in known:
        return beginning
    found = [task_id for task_id in known if task_id.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigurationError(f"{nothing} {beginning!r}; {where}")
    shown = ", ".join(short_name(task_id, known) for task_id in found[:5])
    raise ConfigurationError(f"{len(found)} tasks begin with {beginning!r}: {shown}; {where}")


def local_time(seconds: float) -> str:
    """A moment (seconds since the epoch) on the person's own clock."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
