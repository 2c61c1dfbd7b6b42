"""Lists what happened in a task, from its log: the events of each round and subtask, beside the task's state.

However long a log is, what is kept of it is bounded: the first events and the last ones, by their weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, ModelCalled, RouteViolation
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, ToolCalled
from artoo.contracts.memory import MemoryRead, MemoryWritten
from artoo.contracts.plan import PlanRefused, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.solution import Decided, PlanDirective, RoleFailure
from artoo.ports.spool import Gap
from artoo.tasklog.state import Subtask, TaskState

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
    """One subtask and what happened in it."""

    subtask: Subtask
    events: Events = field(default_factory=Events)


@dataclass(slots=True)
class RoundStory:
    """One turn of the medium loop. `events` belong to no subtask; those `after` came when subtasks had begun."""

    number: int
    events: Events = field(default_factory=Events)
    subtasks: list[SubTaskStory] = field(default_factory=list[SubTaskStory])
    after: Events = field(default_factory=Events)


@dataclass(slots=True)
class TaskStory:
    """One task from its request to its result (`state.result` None: it has not ended, and is `running` or was
    stopped).
    """

    state: TaskState = field(default_factory=TaskState)
    rounds: list[RoundStory] = field(default_factory=list[RoundStory])
    running: bool = False
    unreadable: list[str] = field(default_factory=list[str])
    """Lines of the log that could not be read, where each is and why."""

    def decided(self, part: RoundStory) -> Decided | None:
        """Return the decision that ended a round."""
        return next((each.decided for each in self.state.rounds if each.number == part.number), None)


def told(items: Iterable[Envelope | Gap], *, whole: bool = True) -> TaskStory:
    """Reduce a log, in order, to its story. `whole`: with prompts, answers and outputs."""
    teller = _Teller(whole=whole)
    for item in items:
        if isinstance(item, Gap):
            teller.story.state.missing += item.count
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
        story.state.apply(envelope)
        if isinstance(payload, PlanDirective):
            story.rounds.append(RoundStory(payload.round))
        elif isinstance(payload, SubTask):
            self._begin(payload.subtask_id)
        elif isinstance(payload, Decided):
            self._round()
        elif isinstance(payload, TaskResumed):
            self._keep(self._place(None), payload)
        elif isinstance(payload, SHOWN):
            self._keep(self._place(envelope.subtask_id), payload)

    def _begin(self, subtask_id: str) -> None:
        """A subtask begins. One that goes on after a resumption is the same."""
        subtask, known = self.story.state.subtask(subtask_id), self._subtasks.get(subtask_id)
        if subtask is not None and (known is None or known.subtask is not subtask):
            self._subtasks[subtask_id] = SubTaskStory(subtask)
            self._round().subtasks.append(self._subtasks[subtask_id])

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
