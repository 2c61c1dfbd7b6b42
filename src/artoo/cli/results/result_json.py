"""The result of a task as one JSON object (`--json`), and the exit code of each ending."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from artoo.cli.commands.exit_codes import ACCEPTED, FAILED, INTERRUPTED, NEEDS_INPUT, NO_MODEL, PENDING
from artoo.cli.conversation.conversation_hints import typed
from artoo.contracts.criteria import Assurance
from artoo.contracts.execution import CriterionVerdict
from artoo.contracts.settling import Settled
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.words.outcome import resumable, status_of
from artoo.words.result import result_words
from artoo.words.settling import not_yet, waiting


def exit_code(result: FinalResult, *, strict: bool = False) -> int:
    """Return the exit code: 0 done (perhaps not completely), 4 done with pending changes, 1 abandoned, 3 no model,
    5 a question, 130 interrupted.

    `strict`: true if a result that is incomplete or not verified has exit code 1.
    """
    if result.directive is not Directive.ABANDON:
        if strict and (result.open or result.unmet or result.assurance is Assurance.UNVERIFIED):
            return FAILED
        return PENDING if result.changes.waits else ACCEPTED
    # An abandoned task has the exit code of the reason for which it was abandoned. If there is none for this
    # reason, the code is that of a failure.
    codes = {
        StoppedBy.NO_MODEL: NO_MODEL,
        StoppedBy.QUESTION: NEEDS_INPUT,
        StoppedBy.INTERRUPTED: INTERRUPTED,
    }
    return codes.get(result.stopped_by or StoppedBy.INTERNAL, FAILED)


def as_json(result: FinalResult, verdicts: Sequence[CriterionVerdict] = ()) -> str:
    """Return the result as one line of JSON for programs. `verdicts` are the last verdicts on the subtasks and on
    the task.

    The field `answer` also mentions pending changes. The field `pending` contains the commands for them.
    """
    words = result_words(result.language)
    return json.dumps(
        {
            "status": status_of(result),
            "directive": result.directive.value,
            "answer": "\n\n".join(filter(None, (words.plain(result, typed()), _not_yet(result)))),
            "output": result.output,
            "assurance": result.assurance.value,
            "decided": [
                {"criterion": one.criterion, "verdict": one.verdict, "by": one.decided_by.value} for one in verdicts
            ],
            "open": list(result.open),
            "unmet": [
                {**entry.model_dump(mode="json", exclude={"found"}), "reason": words.reason(entry)}
                for entry in result.unmet
            ],
            "amended": [entry.model_dump(mode="json", by_alias=True) for entry in result.amended],
            "facts": [words.fact(fact) for fact in result.facts],
            "withheld": list(result.withheld),
            "changes": settled_object(result.changes, exclude={"went_out"}),
            "pending": _pending(result),
            "went_out": list(result.changes.went_out),
            "stopped_by": result.stopped_by.value if result.stopped_by is not None else None,
            "resumable": resumable(result),
            "loss": {**result.loss.model_dump(mode="json"), "grad_L": result.grad_l},
            "cost": result.cost.model_dump(mode="json", exclude_none=True),
            "task_id": result.task_id,
            "replans": result.replans,
        },
        ensure_ascii=False,
    )


def settled_object(settled: Settled, exclude: set[str] | None = None) -> dict[str, object]:
    """Return the state of applied and pending changes as JSON. It contains all applied paths, and times in ISO
    8601."""
    named: dict[str, object] = {"applied": list(settled.took_effect), "expires_at": iso(settled.expires_at)}
    return settled.model_dump(mode="json", exclude=exclude) | named


def _not_yet(result: FinalResult) -> str:
    """Return the sentence that changes of the answer are pending. Return an empty text if none are."""
    changes = result.changes
    if not changes.waits:
        return ""
    return not_yet(
        waiting(changes.reason, changes.counts, len(changes.conflicts), result.language), result.language
    )


def _pending(result: FinalResult) -> dict[str, object] | None:
    """Return the commands for pending changes, and when the changes expire. Return None if there are none."""
    changes = result.changes
    if not changes.waits:
        return None
    verbs = ("diff", "discard") if changes.only_conflicts else ("diff", "apply", "discard")
    return {
        "reason": waiting(changes.reason, changes.counts, len(changes.conflicts), result.language),
        "expires_at": iso(changes.expires_at),
        "commands": {name: f"artoo {name} {result.task_id}" for name in verbs},
    }


def iso(seconds: float | None) -> str | None:
    """Format a time (seconds since the epoch) in ISO 8601. Returns None for None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
