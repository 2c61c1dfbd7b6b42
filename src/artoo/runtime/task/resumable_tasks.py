"""List stopped tasks that can be resumed, by the last messages of their logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import TaskOpened
from artoo.runtime.replay.standing import RESUMABLE
from artoo.tasklog.reader import TaskLogReader, TaskSummary, list_tasks
from artoo.workspace.settlement.history import settled_records


def stopped_tasks(home: Path, latest: int | None = None) -> Iterator[TaskSummary]:
    """Yield the stopped tasks among the `latest` tasks (None: among all), latest first. Blocking.

    Running tasks are left out. Tasks of agents are left out too, because agents resume their own work.
    """
    return (one for one in _stopped(home, latest) if not of_an_agent(one.directory))


def only_agents_stopped(home: Path) -> bool:
    """Return whether there are stopped tasks, and all of them are tasks of agents. Blocking."""
    found = list(_stopped(home, None))
    return bool(found) and all(of_an_agent(one.directory) for one in found)


def left_undone(home: Path, latest: int) -> tuple[TaskSummary, ...]:
    """Return the stopped tasks for which no later apply, undo or discard is recorded. Blocking."""
    try:
        said = {one.task_id for one in settled_records(home)}
    except OSError:
        said = set[str]()
    return tuple(one for one in stopped_tasks(home, latest) if one.task_id not in said)


def of_an_agent(log: Path) -> bool:
    """Return whether a task was done for a standing agent."""
    first = next(iter(TaskLogReader(log)), None)
    opened = first.payload if isinstance(first, Envelope) else None
    return isinstance(opened, TaskOpened) and bool(opened.standing)


def _stopped(home: Path, latest: int | None) -> Iterator[TaskSummary]:
    for one in list_tasks(home, latest):
        if not one.running and (one.result is None or one.result.stopped_by in RESUMABLE):
            yield one
