"""How a result is told to whoever asked, whatever they asked through: its state in a word, and its words."""

from __future__ import annotations

from typing import Literal

from artoo.contracts.solution import Directive, FinalResult

Status = Literal["success", "pending", "failed"]


def status_of(result: FinalResult) -> Status:
    """`failed`, or `pending` when something waits for a yes, or `success`."""
    if result.directive is Directive.ABANDON:
        return "failed"
    return "pending" if result.changes.waits else "success"


def answer_of(result: FinalResult) -> str:
    """What a person reads: the summary, and the output where the summary does not already hold it."""
    output = result.output.strip()
    if not output or output in result.summary:
        return result.summary.strip()
    return f"{result.summary.strip()}\n\n{output}".strip()


def told(result: FinalResult) -> str:
    """The answer, and that it is not in effect yet when it waits: nobody may read the one without the other."""
    waits = result.changes.reason if result.changes.waits else ""
    return "\n\n".join(part for part in (answer_of(result), waits) if part)


def resumable(result: FinalResult) -> bool:
    """Whether the task can go on: it stopped for a reason that was not in it."""
    return result.stopped_by is not None and result.stopped_by.is_infrastructure
