"""Takes up a task where its log ends: the log leads its roles there, then everything is real again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.recording import TaskResumed
from artoo.contracts.roles import Role
from artoo.memory.absent import NoMemory
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.model import Model
from artoo.runtime.replay.conductor import Conductor
from artoo.runtime.replay.ports import ConductedPort
from artoo.runtime.replay.recording import Recording
from artoo.runtime.replay.stage import ConductedStage
from artoo.runtime.replay.time import ReplayClock
from artoo.runtime.task.role_context import Hands, TaskMemory


@dataclass(frozen=True, slots=True)
class Beyond:
    """What the task goes on with. `hands` are made for the gate's port of this task."""

    bus: InProcessBus
    model: Model
    hands: Callable[[Port], Hands]
    clock: Clock
    ids: Ids
    memory: TaskMemory | None


async def taken_up(
    recording: Recording, announcement: TaskResumed, beyond: Beyond
) -> tuple[ConductedStage, Conductor]:
    """The stage for the task's roles, and who leads them over it. `announcement` is said when the log is told."""
    clock = ReplayClock(beyond.clock, recording.stream[0].at)
    conductor = Conductor(recording, clock, beyond.bus.repeat)
    gate = ConductedPort(beyond.bus.port(Role.GATE, recording.task_id), None, conductor)
    stage = ConductedStage(
        conductor,
        beyond.bus,
        beyond.model,
        beyond.hands(gate),
        beyond.ids,
        _memory(recording, beyond.memory),
    )
    user = beyond.bus.port(Role.USER, recording.task_id)

    async def open_up() -> None:
        user.close()  # the task's own port listens; this one only speaks
        user.publish(announcement)
        await stage.open_up()

    conductor.open_up = open_up
    return stage, conductor


def _memory(recording: Recording, memory: TaskMemory | None) -> TaskMemory | None:
    """A task that had memory goes on as one, also where it has been turned off since: it learns nothing more."""
    if not recording.opened.memory:
        return None
    absent = NoMemory("memory has been turned off since the task began")
    return memory or TaskMemory(absent, absent)
