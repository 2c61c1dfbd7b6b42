"""The result of a task: for a person, as one JSON object, and as an exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence

from artoo.cli.marks import Marks, cost_line
from artoo.cli.printable import one_line
from artoo.cli.text import Text, role_name, stop_reason
from artoo.cli.view import TaskView
from artoo.contracts.solution import Directive, FinalResult, StoppedBy

ACCEPTED, ABANDONED, USAGE, NO_MODEL, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes of a run (SPEC section 12)."""

LISTED = 20
"""Entries of a list that are shown; the rest are counted. Unmet criteria are always all shown."""


def exit_code(result: FinalResult) -> int:
    """0 when done (perhaps with named gaps), 1 abandoned, 3 no model reachable, 130 interrupted."""
    if result.directive is not Directive.ABANDON:
        return ACCEPTED
    return {StoppedBy.NO_MODEL: NO_MODEL, StoppedBy.INTERRUPTED: INTERRUPTED}.get(
        result.stopped_by or StoppedBy.INTERNAL, ABANDONED
    )


def answer_of(result: FinalResult) -> str:
    """What a person reads: the summary, and the output where the summary does not already hold it."""
    output = result.output.strip()
    if not output or output in result.summary:
        return result.summary.strip()
    return f"{result.summary.strip()}\n\n{output}".strip()


def as_json(result: FinalResult) -> str:
    """One line of JSON: the result for programs."""
    return json.dumps(
        {
            "status": "failed" if result.directive is Directive.ABANDON else "success",
            "directive": result.directive.value,
            "answer": answer_of(result),
            "output": result.output,
            "unmet": [entry.model_dump(mode="json") for entry in result.unmet],
            "stopped_by": result.stopped_by.value if result.stopped_by is not None else None,
            "withheld": list(result.withheld),
            "changes": result.changes.model_dump(mode="json"),
            "loss": {**result.loss.model_dump(mode="json"), "grad_L": result.grad_l},
            "cost": result.cost.model_dump(mode="json", exclude_none=True),
            "task_id": result.task_id,
            "resumable": result.stopped_by is not None and result.stopped_by.is_infrastructure,
            "replans": result.replans,
        },
        ensure_ascii=False,
    )


def as_text(result: FinalResult, view: TaskView, marks: Marks) -> str:
    """The result for a person: the answer, then what is missing, where files are, next moves, and the cost.

    What the summary says already is not said again.
    """
    text = view.text
    blocks = [_verdict(result, text), answer_of(result) or text.no_output, _unmet(result, text, marks)]
    if result.directive is Directive.ABANDON:
        blocks.append(_listed(text.done_head, _unsaid(result, result.done), text, marks.matched))
        blocks.append(_listed(text.tried_head, _unsaid(result, result.tried), text, marks.bullet))
    blocks.append(_listed(text.withheld_head, _unsaid(result, result.withheld), text, marks.bullet))
    blocks.append(_listed(text.files_head, _unsaid(result, tuple(view.files)), text, marks.bullet))
    blocks.append(_listed(text.next_head, _unsaid(result, result.next_moves), text, marks.arrow))
    if result.stopped_by is not None and result.stopped_by.is_infrastructure:
        blocks.append(text.go_on.format(task=result.task_id))
    blocks.append(cost_line(result.cost, marks, text, rounds=max(1, len(view.rounds))))
    return "\n\n".join(block for block in blocks if block)


def _unsaid(result: FinalResult, entries: Sequence[str]) -> tuple[str, ...]:
    """The entries that do not stand in the summary word for word."""
    return tuple(entry for entry in entries if entry not in result.summary)


def _verdict(result: FinalResult, text: Text) -> str:
    """A first line for an ending with gaps, and for an early one of which the summary says nothing."""
    if result.directive is Directive.ABANDON:
        if result.summary:
            return ""
        reason = (result.stopped_by or StoppedBy.INTERNAL).value
        return text.abandoned.format(reason=stop_reason(reason, text))
    return text.success_with_gaps if result.unmet else ""


def _unmet(result: FinalResult, text: Text, marks: Marks) -> str:
    """Every unmet criterion with its reason and the role that answers for it: never shortened."""
    unmet = [
        entry
        for entry in result.unmet
        if not (entry.criterion in result.summary and entry.reason in result.summary)
    ]
    if not unmet:
        return ""
    lines = [text.unmet_head]
    for entry in unmet:
        reason = f": {one_line(entry.reason)}" if entry.reason else ""
        role = text.answers_for.format(role=role_name(entry.accountable.value, text))
        lines.append(f"  {marks.failed} {one_line(entry.criterion)}{reason} ({role})")
    return "\n".join(lines)


def _listed(head: str, entries: tuple[str, ...], text: Text, mark: str) -> str:
    if not entries:
        return ""
    lines = [head, *(f"  {mark} {one_line(entry)}" for entry in entries[:LISTED])]
    if len(entries) > LISTED:
        lines.append("  " + text.more.format(count=len(entries) - LISTED))
    return "\n".join(lines)
