"""The plan of a task as an editor shows it."""

from __future__ import annotations

from collections.abc import Iterator

from acp.helpers import plan_entry, update_plan
from acp.schema import AgentPlanUpdate, PlanEntryStatus

from artoo.redaction import Redactor
from artoo.tasklog.state import Stage, TaskState

_CHECKLIST: dict[str, PlanEntryStatus] = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}
_STAGES: dict[Stage, PlanEntryStatus] = {
    Stage.WORKING: "in_progress",
    Stage.CHECKING: "in_progress",
    Stage.MATCHED: "completed",
}
"""What has failed is still to do."""


def plan_of(state: TaskState, clean: Redactor) -> AgentPlanUpdate | None:
    """Return the whole plan, as the protocol wants it each time; None while there is none."""
    entries = [plan_entry(clean.text(text), status=status) for text, status in _entries(state)]
    return update_plan(entries) if entries else None


def _entries(state: TaskState) -> Iterator[tuple[str, PlanEntryStatus]]:
    """Subtasks of earlier rounds that stand, then those of the present round, each with its checklist."""
    present = next((each for each in reversed(state.rounds) if each.subtasks), None)
    if present is None:
        return
    for subtask_id in present.carried:
        carried = state.subtask(subtask_id)
        if carried is not None:
            yield carried.intent, "completed"
    for subtask in present.subtasks.values():
        yield subtask.intent, _STAGES.get(subtask.stage, "pending")
        for item in subtask.checklist:
            yield item.text, _CHECKLIST[item.status]
