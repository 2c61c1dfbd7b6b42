"""The planner's plan as an editor shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from acp.helpers import plan_entry, update_plan
from acp.schema import AgentPlanUpdate, PlanEntryStatus

from artoo.contracts.plan import DispatchManifest
from artoo.redaction import Redactor


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
