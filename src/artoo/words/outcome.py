"""The state of a result in one word, the same on every surface."""

from __future__ import annotations

from typing import Literal

from artoo.contracts.solution import Directive, FinalResult, StoppedBy

Status = Literal["success", "pending", "failed"]


def status_of(result: FinalResult, *, waits: bool | None = None) -> Status:
    """Return `failed`, `pending` when changes are, or `success`. `waits` None: as when it ended."""
    if result.directive is Directive.ABANDON:
        return "failed"
    return "pending" if (result.changes.waits if waits is None else waits) else "success"


def resumable(result: FinalResult) -> bool:
    """Check whether the task can be resumed: it stopped for a reason outside it."""
    return result.stopped_by is not None and result.stopped_by.is_infrastructure


def ending_of(result: FinalResult | None, *, running: bool) -> str:
    """Return the state of a task: `running`, `not ended`, `interrupted`, or the directive that ended it."""
    if result is None:
        return "running" if running else "not ended"
    return "interrupted" if result.stopped_by is StoppedBy.INTERRUPTED else result.directive.value
