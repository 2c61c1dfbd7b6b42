"""How a result is told to whoever asked, whatever they asked through: its state in a word, and its words."""

from __future__ import annotations

from typing import Literal

from artoo.contracts.solution import Directive, FinalResult
from artoo.words.result import result_words

Status = Literal["success", "pending", "failed"]


def status_of(result: FinalResult, *, waits: bool | None = None) -> Status:
    """`failed`, or `pending` when something waits for a yes, or `success`. `waits` None: as when it ended."""
    if result.directive is Directive.ABANDON:
        return "failed"
    return "pending" if (result.changes.waits if waits is None else waits) else "success"


def told(result: FinalResult, waits: str | None = None) -> str:
    """The answer, and that it is not in effect yet when it waits: nobody may read the one without the other.

    `waits`: why it waits now, empty when it does not; None: as when it ended.
    """
    if waits is None:
        waits = result.changes.reason if result.changes.waits else ""
    return "\n\n".join(part for part in (result_words(result.language).plain(result), waits) if part)


def resumable(result: FinalResult) -> bool:
    """Whether the task can go on: it stopped for a reason that was not in it."""
    return result.stopped_by is not None and result.stopped_by.is_infrastructure
