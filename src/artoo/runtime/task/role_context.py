"""The ports, models, sources, tools and clock that a task's roles get."""

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
    """The sources that show files to the roles. Validators get evidence, and prompts get the surroundings."""

    evidence: EvidenceSource
    surroundings: SurroundingsSource


@dataclass(frozen=True, slots=True)
class SubTaskSight(Sight):
    """The same sources for one subtask. Its surroundings also report the events between two of its turns."""

    surroundings: TurnSource


@dataclass(frozen=True, slots=True)
class Hands:
    """The tools of a task, and the sources through which its roles see the effects of the tools.

    `whole` shows the workspace of the whole task. `sight` takes the id of a subtask and shows its work. `questions`
    receives the questions of the gate, if the gate asks on the stream. `prepare` is run before the request is read,
    and may ask the user. It does not raise. `processes` are the commands that continue to run. They are given the
    time that is left to the task. `ended` is called with the result. It does not raise.
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
    """The two interfaces of shared memory. The planner (R2) gets only the one for reading."""

    recall: Recall
    remember: Remember


class TaskContext:
    """The services that the roles of one task use. Each run of a task has its own.

    A replay overrides its methods with answers from the log (`artoo.runtime.replay.stage`).
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
        """Create the context. `hands`: the tools, and the sources that roles read through `eyes`. If `memory` is
        None, nothing is learnt."""
        self._task_id = task_id
        self._bus = bus
        self._model = model
        self._ids = ids
        self.hands = hands
        self.clock = clock
        self.memory: TaskMemory | None = memory

    def port(self, role: Role, subtask_id: str | None = None) -> Port:
        """Return a role's port on the stream of this task."""
        return self._bus.port(role, self._task_id, subtask_id=subtask_id)

    def inbox(self, kinds: frozenset[str]) -> AsyncIterable[Envelope]:
        """Return an iterable over all messages of these kinds, without loss."""
        return self._bus.inbox(self._task_id, kinds)

    def model(self, role: Role, subtask_id: str | None, time_left: TimeLeft | None = None) -> Model:
        """Return the model of the task for one role. A call is ended when `time_left` returns zero or less."""
        return in_time(self._model, time_left)

    def eyes(self, port: Port, subtask_id: str | None = None) -> Eyes:
        """Return the observer with which the role of `port` reads its sources."""
        return LiveEyes(port)

    def ids(self, role: Role) -> Ids:
        """Return the source of identifiers for one role."""
        return self._ids

    def watch(self) -> Stopwatch:
        """Return the stopwatch of the solver (R7)."""
        return Stopwatch(self.clock)

    async def prepared(self, user: Port) -> None:
        """Return when the tools for the plan are ready and their descriptions are published on the stream."""
        await equip(self.hands, user)

    def close(self) -> None:
        """Close the part of the bus that belongs to the task. Idempotent."""
        self._bus.close_task(self._task_id)


async def equip(hands: Hands, user: Port) -> None:
    """Prepare the tools, and publish their descriptions."""
    if hands.prepare is not None:
        await hands.prepare()
    user.publish(Observed(source=Source.TOOLS, answer=plain(hands.tools.specs)))


T = TypeVar("T", bound=BaseModel)

TimeLeft = Callable[[], float]
"""Returns the number of seconds for which a role may still ask its model. It is zero or less when the time is
over."""


@dataclass(frozen=True, slots=True)
class ModelInTime:
    """A model with a time limit. Implements Model. A call that does not end in time raises BudgetExhausted.

    While a user is asked, the time of the task is paused, but not the timeout of a model call in progress. Such a
    call may therefore be ended a little early, with the same error.
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
    """Return the model with the limit `time_left`. Return the model itself if there is no limit."""
    return model if time_left is None else ModelInTime(model, time_left)
