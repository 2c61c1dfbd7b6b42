"""`artoo undo` for every surface: what can be put back, and putting it back. Blocking; raises SandboxError."""

from __future__ import annotations

from artoo.contracts.changes import UndoableTask, UndoReport
from artoo.runtime.config import Config
from artoo.runtime.settling import keep_of
from artoo.tasklog.lock import not_running
from artoo.world.recover import recover
from artoo.world.undo import damaged, undo, undoable


def what_can_be_undone(config: Config) -> tuple[tuple[UndoableTask, ...], tuple[str, ...]]:
    """The tasks of which acts are kept, and what is damaged; acts that a crash cut are finished or undone first."""
    recover(config.home)
    return undoable(config.home, keep_of(config)), damaged(config.home)


def put_back(config: Config, task_id: str) -> UndoReport:
    """Puts back what a task changed, where nobody changed it since. Raises TaskRunning while it runs."""
    with not_running(config.home, task_id):
        return undo(config.home, task_id)
