"""The context of a task's roles: their ports on the stream, and their access to models, sources, tools and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.recording import Observed, Source
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.ports.ids import Ids
from artoo.ports.model import Answer, Conversation, Model, OnText, Question, Spoken
from artoo.ports.recall import Recall
from artoo.ports.remember import Remember
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.surroundings import SurroundingsSource, TurnSource
from artoo.ports.tools import Tools
from artoo.runtime.task.observed_sources import Eyes, LiveEyes, plain
from artoo.tools.approval.prompts import AskOnStream
from artoo.tools.core.processes import Processes


@dataclass(frozen=True, slots=True)
class Sight:
    """The files as roles see them: for validators, and for a listing."""

    evidence: EvidenceSource
    surroundings: SurroundingsSource


@dataclass(frozen=True, slots=True)
class SubTaskSight(Sight):
    """The same for one subtask, which is also told what happened between its turns."""

    surroundings: TurnSource


@dataclass(frozen=True, slots=True)
class Hands:
    """The tools of a task, and how its roles see their effects.

    `whole` looks at the task's workspace, `sight` at what one subtask did in it, by its id. `questions` are the
    gate's, when it asks on the stream. `prepare` runs before the request is read: what it needs to ask about can be
    asked then. It does not raise. `processes`: the commands that go on; they are told how much time is left.
    `ended` is told the result. It does not raise.
    """

    tools: Tools
    whole: Sight
    sight: Callable[[str], SubTaskSight]
    processes: Processes | None = None
    questions: AskOnStream | None = None
    prepare: Callable[[], Awaitable[None]] | None = None
    ended: Callable[[FinalResult], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """Both sides of shared memory: R2 gets the reading one only."""

    recall: Recall
    remember: Remember


class TaskContext:
    """Everything that the roles of one task are given, besides what they are. One for each run of a task.

    A replay overrides it with answers from the log (`artoo.runtime.replay.stage`).
    """

    def __init__(
        self,
        task_id: str,
        bus: InProcessBus,
        model: Model,
        hands: Hands,
        clock: Clock,
        ids: Ids,
        memory: TaskMemory | None = None,
    ) -> None:
        """`hands`: tools, and sources to be looked at through `eyes`. `memory` None: the task learns nothing."""
        self._task_id = task_id
        self._bus = bus
        self._model = model
        self._ids = ids
        self.hands = hands
        self.clock = clock
        self.memory: TaskMemory | None = memory

    def port(self, role: Role, subtask_id: str | None = None) -> Port:
        """Return a role's place on the stream of this task."""
        return self._bus.port(role, self._task_id, subtask_id=subtask_id)

    def inbox(self, kinds: frozenset[str]) -> AsyncIterable[Envelope]:
        """Return every message of these kinds, without loss."""
        return self._bus.inbox(self._task_id, kinds)

    def model(self, role: Role, subtask_id: str | None, time_left: TimeLeft | None = None) -> Model:
        """Return the task's model as one role asks it, for as long as `time_left` lets it."""
        return in_time(self._model, time_left)

    def eyes(self, port: Port, subtask_id: str | None = None) -> Eyes:
        """Return how the role of `port` looks at sources."""
        return LiveEyes(port)

    def ids(self, role: Role) -> Ids:
        """Return the identifiers that one role gives."""
        return self._ids

    def watch(self) -> Stopwatch:
        """Return R7's stopwatch."""
        return Stopwatch(self.clock)

    async def prepared(self, user: Port) -> None:
        """Return when the tools are there that the plan may use; they are on the stream then."""
        await equip(self.hands, user)

    def close(self) -> None:
        """Take the whole task off the stream. Idempotent."""
        self._bus.close_task(self._task_id)


async def equip(hands: Hands, user: Port) -> None:
    """Prepare the tools, and publish which there are."""
    if hands.prepare is not None:
        await hands.prepare()
    user.publish(Observed(source=Source.TOOLS, answer=plain(hands.tools.specs)))


T = TypeVar("T", bound=BaseModel)

TimeLeft = Callable[[], float]
"""The seconds for which a role may still ask; below zero when the time is over."""


@dataclass(frozen=True, slots=True)
class ModelInTime:
    """Implements Model. A question that would be answered too late ends as one for which no budget is left.

    What a person is asked meanwhile stops the task's time, but not that of a question which is out: it may be given
    up a little early, and then says so.
    """

    model: Model
    time_left: TimeLeft

    async def ask(self, question: Question[T]) -> Answer[T]:
        async with self._in_time():
            return await self.model.ask(question)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        async with self._in_time():
            return await self.model.converse(conversation, on_text)

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        left = self.time_left()
        if left <= 0:
            raise _too_late()
        limit = asyncio.timeout(left)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _too_late() from error


def _too_late() -> BudgetExhausted:
    return BudgetExhausted(
        "the task's budget of time is spent but for what delivering needs; raise it with `seconds` of its limits",
        budget="time",
    )


def in_time(model: Model, time_left: TimeLeft | None) -> Model:
    """Bound `model` in time if there is a bound."""
    return model if time_left is None else ModelInTime(model, time_left)
