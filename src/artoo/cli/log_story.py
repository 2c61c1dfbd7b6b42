"""A task's log folded into what a person asks about: rounds, subtasks, calls, verdicts, decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, ModelCalled, RouteViolation
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, SubTaskOutcome, ToolCalled
from artoo.contracts.memory import MemoryRead, MemoryWritten
from artoo.contracts.plan import PlanRefused, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import Decided, FinalResult, PlanDirective, RoleFailure
from artoo.ports.spool import Gap

SHOWN = (
    ModelCalled,
    ToolCalled,
    CriterionJudged,
    CorrectionSignal,
    PlanRefused,
    RoleFailure,
    RouteViolation,
    MessagesDropped,
    MemoryRead,
    MemoryWritten,
)
"""What appears as a line of its own, in order."""


@dataclass(slots=True)
class SubTaskStory:
    """One subtask: what it was to do, what happened in it, how it ended (None: it did not)."""

    subtask_id: str
    intent: str
    events: list[Contract] = field(default_factory=list[Contract])
    outcome: SubTaskOutcome | None = None


@dataclass(slots=True)
class RoundStory:
    """One turn of the medium loop. `events` belong to no subtask."""

    number: int
    events: list[Contract] = field(default_factory=list[Contract])
    subtasks: list[SubTaskStory] = field(default_factory=list[SubTaskStory])
    decided: Decided | None = None


@dataclass(slots=True)
class TaskStory:
    """One task from its request to its result (None: it has not ended). `missing` counts lost messages."""

    task_id: str = ""
    started: datetime | None = None
    request: str = ""
    rounds: list[RoundStory] = field(default_factory=list[RoundStory])
    result: FinalResult | None = None
    missing: int = 0


def told(items: Iterable[Envelope | Gap]) -> TaskStory:
    """Folds a log, in order, into its story."""
    teller = _Teller()
    for item in items:
        if isinstance(item, Gap):
            teller.story.missing += item.count
        else:
            teller.hear(item)
    return teller.story


class _Teller:
    def __init__(self) -> None:
        self.story = TaskStory()
        self._subtasks: dict[str, SubTaskStory] = {}

    def hear(self, envelope: Envelope) -> None:
        story, payload = self.story, envelope.payload
        if story.started is None:
            story.started, story.task_id = envelope.at, envelope.task_id
        if isinstance(payload, UserRequest):
            story.request = payload.text
        elif isinstance(payload, FinalResult):
            story.result = payload
        elif isinstance(payload, TaskResumed):
            story.result = None
            self._place(None).append(payload)
        elif isinstance(payload, PlanDirective):
            story.rounds.append(RoundStory(payload.round))
        elif isinstance(payload, Decided):
            self._round().decided = payload
        elif isinstance(payload, SubTask):
            subtask = self._subtasks[payload.subtask_id] = SubTaskStory(payload.subtask_id, payload.intent)
            self._round().subtasks.append(subtask)
        elif isinstance(payload, SubTaskOutcome) and payload.subtask_id in self._subtasks:
            self._subtasks[payload.subtask_id].outcome = payload
        elif isinstance(payload, SHOWN):
            self._place(envelope.subtask_id).append(payload)

    def _place(self, subtask_id: str | None) -> list[Contract]:
        subtask = self._subtasks.get(subtask_id or "")
        return self._round().events if subtask is None else subtask.events

    def _round(self) -> RoundStory:
        if not self.story.rounds:
            self.story.rounds.append(RoundStory(1))
        return self.story.rounds[-1]
