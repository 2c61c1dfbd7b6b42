"""The context of a replayed or resumed task, with recorded answers before live services.

It answers from the log first. A resumed task then goes live.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.base import Contract
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.contracts.recording import Source, TaskResumed
from artoo.contracts.roles import Role
from artoo.contracts.routes import may_publish
from artoo.contracts.settling import Ending
from artoo.contracts.steering import PlanProposed, QuestionAsked, UserMessage
from artoo.memory.absent import NoMemory
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.model import Model
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.tools import ToolSpec
from artoo.runtime.replay.answers import (
    RecordedEyes,
    RecordedIds,
    RecordedModel,
    RecordedRemember,
    RecordedTools,
    read_back,
)
from artoo.runtime.replay.conductor import PLAYED, Conductor, RecordedWatch, ReplayClock
from artoo.runtime.replay.recording import Recording
from artoo.runtime.task.observed_sources import Eyes
from artoo.runtime.task.role_context import Hands, TaskContext, TaskMemory, TimeLeft, equip

_USER = (Role.USER, None)


class ReplayContext(TaskContext):
    """The services of a task that a conductor leads through its log. `model`, `hands` and `memory` are used only
    after the end of the log."""

    def __init__(
        self,
        conductor: Conductor,
        bus: InProcessBus,
        model: Model,
        hands: Hands,
        ids: Ids,
        memory: TaskMemory | None,
        *,
        remembers: bool = True,
    ) -> None:
        """Create the context. If `remembers` is false, as in a replay, the lessons of the roles are not stored."""
        recording = conductor.recording
        self._conductor = conductor
        self._beyond = hands
        self._specs = offered_tools(recording)
        given = replace(hands, tools=RecordedTools(conductor, self._specs, hands.tools), prepare=None)
        super().__init__(recording.task_id, bus, model, given, conductor.clock, ids)
        if memory is not None:
            self._remember = RecordedRemember(conductor, ids, memory.remember if remembers else None)
            self.memory = TaskMemory(memory.recall, self._remember)

    def port(self, role: Role, subtask_id: str | None = None) -> Port:
        return ConductedPort(super().port(role, subtask_id), subtask_id, self._conductor)

    def model(self, role: Role, subtask_id: str | None, time_left: TimeLeft | None = None) -> Model:
        """Return a model for a role. Its answers from the log take no time."""
        return RecordedModel(self._conductor, (role, subtask_id), super().model(role, subtask_id, time_left))

    def eyes(self, port: Port, subtask_id: str | None = None) -> Eyes:
        return RecordedEyes(self._conductor, (port.role, subtask_id), port)

    def ids(self, role: Role) -> Ids:
        recording = self._conductor.recording
        recorded = recording.subtask_ids if role is Role.DISPATCHER else recording.megram_ids
        return RecordedIds(recorded, self._ids)

    def watch(self) -> Stopwatch:
        return RecordedWatch(self._conductor.clock, self._conductor.elapsed_ms)

    async def prepared(self, user: Port) -> None:
        """Prepare the tools. If the log ends before it names them, wait until the task is live and then prepare the
        real ones."""
        if self._specs is None:
            await self._conductor.until_live(_USER, "the tools")
            await equip(self._beyond, user)

    async def open_up(self) -> None:
        """Prepare the real tools and store the lessons that were held back, before any role continues."""
        if self._specs is not None and self._beyond.prepare is not None:
            await self._beyond.prepare()
        if self.memory is not None:
            self._remember.go_live()


def offered_tools(recording: Recording) -> tuple[ToolSpec, ...] | None:
    """Return the tools that were offered to the task's roles. Return None if the log ends before that."""
    seen = recording.sight(_USER, Source.TOOLS)
    return None if seen is None else read_back(tuple[ToolSpec, ...], seen.answer)


_SETTLED = (ConfirmationRequest, ConfirmationAnswer, Ending, QuestionAsked, PlanProposed)
"""Messages in the log that the user and the gate do not receive again, because they were answered at that time. An
Ending without an answer is no longer valid (see `standing`), so the solver publishes it again when the task is
live.
"""


class ConductedPort:
    """Wraps a port of the bus, so that the conductor can compare the role's messages with the log. Implements
    ports.bus.Port."""

    def __init__(self, inner: Port, subtask_id: str | None, conductor: Conductor) -> None:
        self._inner = inner
        self._subtask_id = subtask_id
        self._conductor = conductor

    @property
    def role(self) -> Role:
        return self._inner.role

    @property
    def task_id(self) -> str:
        return self._inner.task_id

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """Publish a message. Before the task is live, return the equal message in the log, or hold this one."""
        conductor, kind = self._conductor, type(payload).__name__
        passing = conductor.live or (conductor.opening and self.role not in PLAYED)
        if passing or not may_publish(self.role, kind):
            return self._inner.publish(payload, cause=cause, subtask_id=subtask_id)
        place = self._subtask_id if subtask_id is None else subtask_id
        cause_id = None if cause is None else cause.id
        said = Envelope("", self.role, self.task_id, conductor.clock.now(), payload, place, cause_id)
        return conductor.say(said, lambda: self._inner.publish(payload, cause=cause, subtask_id=subtask_id))

    async def receive(self) -> Envelope:
        while True:
            envelope = await self._inner.receive()
            if not (self._was_settled(envelope) or self._was_held(envelope)):
                return envelope

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            try:
                envelope = await self.receive()
            except StreamClosed:
                return
            yield envelope

    def close(self) -> None:
        self._inner.close()

    def _was_held(self, envelope: Envelope) -> bool:
        """Return whether the message is a request in the log to interrupt a turn. Such a request is no longer
        valid."""
        payload = envelope.payload
        return isinstance(payload, UserMessage) and payload.hold and self._conductor.is_logged(envelope)

    def _was_settled(self, envelope: Envelope) -> bool:
        settled = self.role in (Role.USER, Role.GATE) and isinstance(envelope.payload, _SETTLED)
        return settled and self._conductor.is_logged(envelope)


async def taken_up(
    recording: Recording,
    announcement: TaskResumed,
    make_hands: Callable[[Port], Awaitable[Hands]],
    *,
    bus: InProcessBus,
    model: Model,
    clock: Clock,
    ids: Ids,
    memory: TaskMemory | None,
) -> tuple[ReplayContext, Conductor]:
    """Return the context for the task's roles, and the conductor that leads them through the log.

    `announcement` is published after the log has been repeated. `make_hands` is called with the gate's port in this
    task. The other arguments are the services with which the task continues.
    """
    conductor = Conductor(recording, ReplayClock(clock, recording.stream[0].at), bus.repeat)
    gate = ConductedPort(bus.port(Role.GATE, recording.task_id), None, conductor)
    stage = ReplayContext(conductor, bus, model, await make_hands(gate), ids, _memory(recording, memory))
    user = bus.port(Role.USER, recording.task_id)

    async def open_up() -> None:
        # The port of the task receives messages for the user, and this port only publishes.
        user.close()
        user.publish(announcement)
        await stage.open_up()

    conductor.open_up = open_up
    return stage, conductor


def _memory(recording: Recording, memory: TaskMemory | None) -> TaskMemory | None:
    """Return the memory of the task. Return None if the task began without memory. If memory is switched off now,
    nothing more is stored."""
    if not recording.opened.memory:
        return None
    absent = NoMemory("memory has been turned off since the task began")
    return memory or TaskMemory(absent, absent)
