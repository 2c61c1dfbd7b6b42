"""The stage of a replay and of a resumed task: the log first, then (a resumed task) the real thing."""

from __future__ import annotations

from collections.abc import AsyncIterable

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import Source
from artoo.contracts.roles import Role
from artoo.ports.bus import Port
from artoo.ports.ids import Ids
from artoo.ports.model import Model
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.tools import ToolSpec
from artoo.runtime.replay.answers import RecordedEyes, RecordedIds, RecordedModel, RecordedRemember, read_back
from artoo.runtime.replay.conductor import Conductor
from artoo.runtime.replay.ports import ConductedPort
from artoo.runtime.replay.recording import Recording
from artoo.runtime.replay.time import RecordedWatch, ReplayClock
from artoo.runtime.replay.tools import RecordedTools
from artoo.runtime.task.deadline_model import TimeLeft, in_time
from artoo.runtime.task.observed_sources import Eyes
from artoo.runtime.task.role_context import Hands, TaskMemory, equip

_USER = (Role.USER, None)


class ConductedStage:
    """Implements runtime.stage.Stage for one conductor. `model`, `hands`, `memory` are what lies beyond the log."""

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
        """`remembers` False: what roles teach goes nowhere (a replay)."""
        recording = conductor.recording
        self._conductor = conductor
        self._bus = bus
        self._task_id = recording.task_id
        self._model = model
        self._ids = ids
        self._beyond = hands
        self._specs = offered_tools(recording)
        self.clock: ReplayClock = conductor.clock
        self.hands = Hands(
            tools=RecordedTools(conductor, self._specs, hands.tools),
            whole=hands.whole,
            sight=hands.sight,
            questions=hands.questions,
            processes=hands.processes,
        )
        self.memory: TaskMemory | None = None
        if memory is not None:
            self._remember = RecordedRemember(conductor, ids, memory.remember if remembers else None)
            self.memory = TaskMemory(memory.recall, self._remember)

    def port(self, role: Role, subtask_id: str | None = None) -> Port:
        """See Stage."""
        inner = self._bus.port(role, self._task_id, subtask_id=subtask_id)
        return ConductedPort(inner, subtask_id, self._conductor)

    def inbox(self, kinds: frozenset[str]) -> AsyncIterable[Envelope]:
        """See Stage."""
        return self._bus.inbox(self._task_id, kinds)

    def model(self, role: Role, subtask_id: str | None, time_left: TimeLeft | None = None) -> Model:
        """See Stage. What the log answers takes no time."""
        return RecordedModel(self._conductor, (role, subtask_id), in_time(self._model, time_left))

    def eyes(self, port: Port, subtask_id: str | None = None) -> Eyes:
        """See Stage."""
        return RecordedEyes(self._conductor, (port.role, subtask_id), port)

    def ids(self, role: Role) -> Ids:
        """See Stage."""
        recording = self._conductor.recording
        recorded = recording.subtask_ids if role is Role.DISPATCHER else recording.megram_ids
        return RecordedIds(recorded, self._ids)

    def watch(self) -> Stopwatch:
        """See Stage."""
        return RecordedWatch(self.clock, self._conductor.elapsed_ms)

    async def prepared(self, user: Port) -> None:
        """The log has the tools; where it ends before that, they are prepared when the task goes live."""
        if self._specs is None:
            await self._conductor.until_live(_USER, "the tools")
            await equip(self._beyond, user)

    async def open_up(self) -> None:
        """Prepares the real tools behind those of the log, before anybody goes on."""
        if self._specs is not None and self._beyond.prepare is not None:
            await self._beyond.prepare()
        if self.memory is not None:
            self._remember.go_live()

    def close(self) -> None:
        """See Stage."""
        self._bus.close_task(self._task_id)


def offered_tools(recording: Recording) -> tuple[ToolSpec, ...] | None:
    """The tools that the task's roles were told of; None when the log ends before that."""
    seen = recording.sight(_USER, Source.TOOLS)
    return None if seen is None else read_back(tuple[ToolSpec, ...], seen.answer)
