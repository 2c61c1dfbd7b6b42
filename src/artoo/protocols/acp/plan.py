"""The planner's plan as an editor shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from acp.helpers import plan_entry, update_plan
from acp.schema import AgentPlanUpdate, PlanEntryStatus

from artoo.contracts.conversation import ChecklistItem
from artoo.contracts.plan import DispatchManifest
from artoo.redaction import Redactor

_STATUS: dict[str, PlanEntryStatus] = {"pending": "pending", "in_progress": "in_progress", "done": "completed"}


@dataclass(slots=True)
class ShownPlan:
    """The subtasks of the current round, and those of earlier rounds that stand. What has failed is still to do."""

    _entries: dict[str, tuple[str, PlanEntryStatus]] = field(
        default_factory=dict[str, "tuple[str, PlanEntryStatus]"]
    )

    def begin(self, manifest: DispatchManifest) -> None:
        """A round begins."""
        stand: dict[str, tuple[str, PlanEntryStatus]] = {
            known: (self._entries[known][0], "completed") for known in manifest.carried if known in self._entries
        }
        fresh: dict[str, tuple[str, PlanEntryStatus]] = {
            one.subtask_id: (one.intent, "pending") for one in manifest.subtasks
        }
        self._entries = stand | fresh

    def detail(self, subtask_id: str, items: Sequence[ChecklistItem]) -> bool:
        """Show an executor's checklist below its subtask. False: the subtask is not in the plan."""
        if subtask_id not in self._entries:
            return False
        prefix = f"{subtask_id}/"
        kept = {key: entry for key, entry in self._entries.items() if not key.startswith(prefix)}
        fresh: dict[str, tuple[str, PlanEntryStatus]] = {
            f"{prefix}{number}": (item.text, _STATUS[item.status]) for number, item in enumerate(items)
        }
        self._entries = {}
        for key, entry in kept.items():
            self._entries[key] = entry
            self._entries |= fresh if key == subtask_id else {}
        return True

    def mark(self, subtask_id: str, status: PlanEntryStatus) -> bool:
        """How a subtask stands now. False: nothing has changed."""
        known = self._entries.get(subtask_id)
        if known is None or known[1] == status:
            return False
        self._entries[subtask_id] = (known[0], status)
        return True

    def update(self, clean: Redactor) -> AgentPlanUpdate:
        """The whole plan, as the protocol wants it each time."""
        return update_plan(
            plan_entry(clean.text(intent), status=status) for intent, status in self._entries.values()
        )
