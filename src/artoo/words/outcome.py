"""The state of a result in one word (success, pending, failed), and the check if it can be resumed."""

from __future__ import annotations

from typing import Literal

from artoo.contracts.solution import Directive, FinalResult, StoppedBy

Status = Literal["success", "pending", "needs_input", "failed"]


def status_of(result: FinalResult, *, waits: bool | None = None) -> Status:
    """Return `needs_input` for a question to the user, else `failed`, `pending` or `success`.

    `waits`: true if changes are pending; None means as at the end.
    """
    if result.stopped_by is StoppedBy.QUESTION:
        return "needs_input"
    if result.directive is Directive.ABANDON:
        return "failed"
    return "pending" if (result.changes.waits if waits is None else waits) else "success"


def resumable(result: FinalResult) -> bool:
    """Check whether the task can be resumed, because it stopped for a reason of the infrastructure."""
    return result.stopped_by is not None and result.stopped_by.is_infrastructure


def ending_of(result: FinalResult | None, *, running: bool) -> str:
    """Return the state of a task: `running`, `not ended`, `interrupted`, or the directive that ended it."""
    if result is None:
        return "running" if running else "not ended"
    return "interrupted" if result.stopped_by is StoppedBy.INTERRUPTED else result.directive.value
