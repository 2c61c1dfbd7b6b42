"""Run one job through the real roles, assembled as in the product, on the lab's stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import Cost, Decided, FinalResult
from artoo.ports.bus import Port
from artoo.ports.ids import Ids
from artoo.ports.model import Model
from artoo.runtime.task.role_context import TaskContext, TaskMemory, TimeLeft
from artoo.runtime.task.task_run import TaskRun, TaskSettings
from artoo.testing.ids import SequentialIds
from lab.hands import hands_of, specs_of
from lab.laws import Arm
from lab.minds import LabModel, Minds, Progress, Told
from lab.time import LabClock
from lab.world import Job, World

_MOST_SUBTASKS = 64


@dataclass(frozen=True, slots=True)
class Round:
    """One decision of R7: the state, and what it was made from."""

    state: str
    distance: float
    implausibility: float
    gradient: float
    suspicious: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a job.

    `met` of `criteria` were met, of which `can` can be. `rounds`: progress after each round; `steps`: tool calls,
    `redundant` of them made before for the same part in the same place. `seconds` are virtual. `first_tools`: R2's
    first choice for each part, `label` the kind under which memory kept the job.
    """

    number: int
    criteria: int
    can: int
    directive: str
    met: int
    calls: int
    steps: int
    redundant: int
    messages: int
    seconds: float
    rounds: tuple[Progress, ...]
    decided: tuple[Round, ...]
    first_tools: tuple[str, ...]
    label: str = ""

    @property
    def solved(self) -> bool:
        """True if every criterion of every part is met."""
        return self.met == self.criteria

    @property
    def share(self) -> float:
        """Return the share of criteria that are met."""
        return self.met / self.criteria

    @property
    def lost(self) -> float:
        """Return the share of criteria that were still open when it stopped although they could be met."""
        return max(0, self.can - self.met) / self.criteria


class LabStage(TaskContext):
    """The live stage, with a mind for each role."""

    def __init__(
        self, task_id: str, bus: InProcessBus, minds: Minds, clock: LabClock, ids: Ids, memory: TaskMemory | None
    ) -> None:
        specs = specs_of(minds.world.names)
        super().__init__(task_id, bus, LabModel(minds, clock), hands_of(minds, clock, specs), clock, ids, memory)
        self._minds = minds

    def model(self, role: Role, subtask_id: str | None, time_left: TimeLeft | None = None) -> Model:
        """See Stage. A judge is never given up here: how long one thinks is what an experiment sets."""
        return LabModel(self._minds, LabClock(), subtask_id)


class _Gate:
    """Settle what a job changed: nothing."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def tap(self, envelope: Envelope) -> None:
        """Answer the ending."""
        if isinstance(envelope.payload, Ending):
            self._port.publish(Settled(), cause=envelope)


async def run_job(
    world: World,
    job: Job,
    arm: Arm,
    seed: int,
    *,
    ids: Ids | None = None,
    memory: TaskMemory | None = None,
    heard: Callable[[Envelope], None] | None = None,
    minds: Minds | None = None,
) -> Trace:
    """Run one job to its end; `heard` is told its whole stream. Must be called inside a VirtualLoop."""
    clock, ids = LabClock(), ids or SequentialIds()
    bus, minds, task_id = InProcessBus(clock, ids), minds or Minds(world, job, seed), ids.new()
    law = arm.make(arm.hyperparameters, job)
    law.spent = minds.spent
    decided: list[Decided] = []

    def watch(envelope: Envelope) -> None:
        if isinstance(envelope.payload, Decided):
            minds.told = law.told
            decided.append(envelope.payload)

    minds.told = Told.TRUTH if law.told is Told.TRUTH else Told.DIRECTIVE
    for tap in (minds.tap, watch, _Gate(bus.port(Role.GATE, task_id)).tap, *([heard] if heard else ())):
        bus.attach(tap)
    settings = TaskSettings(
        hyperparameters=arm.hyperparameters,
        most_subtasks=_MOST_SUBTASKS,
        ask_for_moves=False,
    )
    stage = LabStage(task_id, bus, minds, clock, ids, memory)
    started = clock.monotonic()
    run = TaskRun(task_id, stage, settings, Cost, trajectory=law)
    request = UserRequest(text=job.request, project="/", workspace="/")
    result = await run.run(TaskOpened(artoo="lab"), request, _nothing)
    return _trace(job, minds, law.extra, decided, result, clock.monotonic() - started)


def _trace(
    job: Job, minds: Minds, extra: int, decided: Sequence[Decided], result: FinalResult, seconds: float
) -> Trace:
    rounds = _with_extra(tuple(minds.rounds), extra)
    return Trace(
        number=job.number,
        criteria=job.criteria,
        can=sum(len(part.criteria) for part in job.parts if part.right),
        directive=result.directive.value,
        met=rounds[-1].met if rounds else 0,
        calls=minds.calls + extra,
        steps=minds.tool_calls,
        redundant=minds.redundant,
        messages=minds.messages,
        seconds=seconds,
        rounds=rounds,
        decided=tuple(map(_round, decided)),
        first_tools=minds.first_tools,
        label=minds.kept_as,
    )


def _round(decided: Decided) -> Round:
    loss = decided.loss
    return Round(decided.directive.value, loss.D, loss.P, decided.grad_l, decided.suspicious)


def _with_extra(rounds: tuple[Progress, ...], extra: int) -> tuple[Progress, ...]:
    """Add the calls that a baseline makes between its rounds, spread over them."""
    between = max(1, len(rounds) - 1)
    return tuple(Progress(each.calls + round(extra * at / between), each.met) for at, each in enumerate(rounds))


def _nothing() -> None:
    """Return nothing, because there is nothing to claim."""
