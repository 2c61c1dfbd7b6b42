"""One task from request to result: all roles on one stream, and nothing else that connects them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.plan import SubTask
from artoo.contracts.request import Interrupt, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.control.hyperparameters import Hyperparameters
from artoo.llm.budget import Budget
from artoo.loops.asking import Asker
from artoo.loops.fast.agent_validator import AgentValidator
from artoo.loops.fast.executor import Executor, ExecutorLimits
from artoo.loops.fast.second_look import SecondLook
from artoo.loops.medium.dispatcher import Dispatcher
from artoo.loops.medium.endings import Endings
from artoo.loops.medium.meta_validator import MetaValidator
from artoo.loops.medium.perceiver import Perceiver
from artoo.loops.medium.planner import Planner
from artoo.loops.medium.solver import Experience, Solver
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.ports.ids import Ids
from artoo.ports.model import Model, Tier
from artoo.ports.recall import Recall
from artoo.ports.remember import Remember
from artoo.ports.surroundings import SurroundingsSource
from artoo.ports.tools import Tools
from artoo.runtime.answers import Answers
from artoo.runtime.effectors import POOL_KINDS, EffectorPool, Pair
from artoo.tools.questions import AskOnStream


@dataclass(frozen=True, slots=True)
class Hands:
    """What a task may do on this machine: its tools, and how its validators look at things.

    `questions` are the gate's, when it asks on the stream. `prepare` runs before the request is read: what it
    needs to ask about can be asked then. It does not raise.
    """

    tools: Tools
    evidence: EvidenceSource
    surroundings: SurroundingsSource
    questions: AskOnStream | None = None
    prepare: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """Both sides of shared memory: R2 gets the reading one only."""

    recall: Recall
    remember: Remember


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """How a task is run. `strict_roles` makes every role call its model; checks still decide."""

    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    executor: ExecutorLimits = field(default_factory=ExecutorLimits)
    most_subtasks: int = 8
    strict_roles: bool = False
    ask_for_moves: bool = True
    second_look: SecondLook = SecondLook.AUTO


class TaskRun:
    """Assembles the roles of one task and runs them until R7 has spoken."""

    def __init__(
        self,
        task_id: str,
        bus: InProcessBus,
        model: Model,
        hands: Hands,
        budget: Budget,
        settings: TaskSettings,
        clock: Clock,
        ids: Ids,
        answers: Answers | None = None,
        memory: TaskMemory | None = None,
        persona: str = "",
    ) -> None:
        """`memory` None: the task neither recalls nor learns. `persona`: the accepted part of the T layer."""
        self._memory = memory
        self._persona = persona
        self.task_id = task_id
        self._answers = answers or Answers()
        self._bus = bus
        self._model = model
        self._hands = hands
        self._budget = budget
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._user = bus.port(Role.USER, task_id)

    async def run(self, request: UserRequest) -> FinalResult:
        """Publishes the request and returns the FinalResult; afterwards nothing of the task runs any more."""
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(role) for role in self._roles()]
            self._user.publish(request)
            try:
                return await self._result(
                    lambda envelope: running.append(group.create_task(self._answer(envelope)))
                )
            finally:
                self._bus.close_task(self.task_id)
                for task in running:
                    task.cancel()

    def interrupt(self, reason: str = "interrupted") -> None:
        """Asks R7 to end the task now, honestly."""
        self._user.publish(Interrupt(reason=reason))

    async def _result(self, ask: Callable[[Envelope], None]) -> FinalResult:
        """The end of the task; until then `ask` is given every question of the gate."""
        while True:
            envelope = await self._user.receive()
            if isinstance(envelope.payload, FinalResult):
                return envelope.payload
            if isinstance(envelope.payload, ConfirmationRequest):
                ask(envelope)

    async def _answer(self, question: Envelope) -> None:
        if isinstance(question.payload, ConfirmationRequest):
            self._user.publish(await self._answers.answer(question.payload), cause=question)

    def _roles(self) -> list[Coroutine[None, None, None]]:
        """Every role's life, each with a port of its own; all ports are open before the first message."""
        settings, hands, clock = self._settings, self._hands, self._clock
        pool = EffectorPool(self._bus.inbox(self.task_id, POOL_KINDS), self._pair)
        perceiver = Perceiver(*self._speaker(Role.PERCEIVER, Tier.BRAIN), clock, always_ask=settings.strict_roles)
        planner = Planner(
            *self._speaker(Role.PLANNER, Tier.BRAIN),
            hands.tools,
            hands.surroundings,
            recall=self._memory.recall if self._memory is not None else None,
            most_subtasks=settings.most_subtasks,
        )
        dispatcher = Dispatcher(self._bus.port(Role.DISPATCHER, self.task_id), self._ids)
        meta_validator = MetaValidator(
            *self._speaker(Role.META_VALIDATOR, Tier.BRAIN),
            hands.evidence,
            clock,
            max_replans=settings.hyperparameters.max_replans,
            always_ask=settings.strict_roles,
        )
        port, asker = self._speaker(Role.SOLVER, Tier.BRAIN)
        solver = Solver(
            port,
            Endings(asker, ask_for_moves=settings.ask_for_moves),
            hands.tools,
            clock,
            settings.hyperparameters,
            self._budget.cost,
            memory=self._experience(port),
        )
        roles = (pool, planner, dispatcher, meta_validator, solver)
        asking = (hands.questions,) if hands.questions is not None else ()
        return [*(role.run() for role in (*asking, *roles)), self._prepared(perceiver)]

    async def _prepared(self, perceiver: Perceiver) -> None:
        """R1 reads the request when the tools are there that the plan may use; it waits in the inbox."""
        if self._hands.prepare is not None:
            await self._hands.prepare()
        await perceiver.run()

    def _experience(self, port: Port) -> Experience | None:
        if self._memory is None:
            return None
        return Experience(port, self._memory.recall, self._memory.remember, self._clock, self._ids)

    def _pair(self, subtask: SubTask) -> Pair:
        """The effector agent of one subtask."""
        key = subtask.subtask_id
        executor_port, executor_asker = self._speaker(Role.EXECUTOR, Tier.TOOL, key)
        validator_port, validator_asker = self._speaker(Role.AGENT_VALIDATOR, Tier.TOOL, key)
        toolbox = self._hands.tools.toolbox(key, subtask.must_not, subtask.cautions)
        executor = Executor(executor_port, executor_asker, toolbox, self._settings.executor)
        validator = AgentValidator(
            validator_port,
            validator_asker,
            self._hands.evidence,
            self._hands.surroundings,
            max_retries=self._settings.hyperparameters.max_retries,
            always_ask=self._settings.strict_roles,
            second_look=self._settings.second_look,
        )

        def close() -> None:
            executor_port.close()
            validator_port.close()

        return Pair(executor.run(), validator.run(), close)

    def _speaker(self, role: Role, tier: Tier, subtask_id: str | None = None) -> tuple[Port, Asker]:
        port = self._bus.port(role, self.task_id, subtask_id=subtask_id)
        return port, Asker(port, self._model, self._clock, tier, self._persona)
