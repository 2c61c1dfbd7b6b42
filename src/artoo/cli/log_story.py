"""A task's log folded into what a person asks about: rounds, subtasks, calls, verdicts, decisions.

However long a log is, what is kept of it is bounded: the first events and the last ones, by their weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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


KEPT_CHARACTERS = 32_000_000
"""Weight of the events that are kept, the first and the last half each."""
_EVENT_CHARACTERS = 2_000
"""What an event weighs besides its long texts."""


@dataclass(slots=True)
class Events:
    """What happened at one place, in order: `first`, then `left_out` that are not kept, then `last`."""

    first: list[Contract] = field(default_factory=list[Contract])
    left_out: int = 0
    last: deque[Contract] = field(default_factory=deque[Contract])

    def __iter__(self) -> Iterator[Contract]:
        return iter((*self.first, *self.last))


@dataclass(slots=True)
class SubTaskStory:
    """One subtask: what it was to do, what happened in it, how it ended (None: it did not)."""

    subtask_id: str
    intent: str
    events: Events = field(default_factory=Events)
    outcome: SubTaskOutcome | None = None


@dataclass(slots=True)
class RoundStory:
    """One turn of the medium loop. `events` belong to no subtask; those `after` came when subtasks had begun."""

    number: int
    events: Events = field(default_factory=Events)
    subtasks: list[SubTaskStory] = field(default_factory=list[SubTaskStory])
    after: Events = field(default_factory=Events)
    decided: Decided | None = None


@dataclass(slots=True)
class TaskStory:
    """One task from its request to its result (None: it has not ended, and is `running` or was stopped).

    `missing` counts lost messages.
    """

    task_id: str = ""
    started: datetime | None = None
    request: str = ""
    rounds: list[RoundStory] = field(default_factory=list[RoundStory])
    result: FinalResult | None = None
    running: bool = False
    missing: int = 0
    unreadable: list[str] = field(default_factory=list[str])
    """Lines of the log that could not be read, where each is and why."""


def told(items: Iterable[Envelope | Gap], *, whole: bool = True) -> TaskStory:
    """Folds a log, in order, into its story. `whole`: with prompts, answers and outputs."""
    teller = _Teller(whole=whole)
    for item in items:
        if isinstance(item, Gap):
            teller.story.missing += item.count
        else:
            teller.hear(item)
    return teller.story


def details(event: Contract) -> list[tuple[str, str]]:
    """The long texts of an event, each with its name."""
    if isinstance(event, ModelCalled):
        return [("system", event.system), ("user", event.asked), ("answer", event.answer)]
    if isinstance(event, ToolCalled):
        call = event.call
        found = [("output", call.output), ("errors", call.error_output), ("reason", call.reason or "")]
        return [(name, text) for name, text in found if text]
    if isinstance(event, CorrectionSignal):
        return [("to do", event.what_to_do)]
    return []


def _without_details(event: Contract) -> Contract:
    if isinstance(event, ModelCalled):
        return event.model_copy(update={"system": "", "user": "", "answer": ""})
    if isinstance(event, ToolCalled):
        return event.model_copy(update={"call": event.call.model_copy(update={"output": "", "error_output": ""})})
    return event


class _Teller:
    def __init__(self, *, whole: bool) -> None:
        self.story = TaskStory()
        self._whole = whole
        self._weight = 0
        self._latest: deque[tuple[Events, int]] = deque()
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
            self._keep(self._place(None), payload)
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
            self._keep(self._place(envelope.subtask_id), payload)

    def _keep(self, place: Events, event: Contract) -> None:
        """Keeps an event; the first half for good, of the others the latest."""
        kept = event if self._whole else _without_details(event)
        weight = _EVENT_CHARACTERS + sum(len(text) for _, text in details(kept))
        if not self._latest and self._weight + weight <= KEPT_CHARACTERS // 2:
            self._weight += weight
            place.first.append(kept)
            return
        if not self._latest:
            self._weight = 0
        place.last.append(kept)
        self._latest.append((place, weight))
        self._weight += weight
        while self._weight > KEPT_CHARACTERS // 2 and len(self._latest) > 1:
            oldest, less = self._latest.popleft()
            oldest.last.popleft()
            oldest.left_out += 1
            self._weight -= less

    def _place(self, subtask_id: str | None) -> Events:
        subtask = self._subtasks.get(subtask_id or "")
        if subtask is not None:
            return subtask.events
        part = self._round()
        return part.after if part.subtasks else part.events

    def _round(self) -> RoundStory:
        if not self.story.rounds:
            self.story.rounds.append(RoundStory(1))
        return self.story.rounds[-1]
