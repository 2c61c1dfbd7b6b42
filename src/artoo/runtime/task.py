"""One task from request to result: all roles on one stream, and nothing else that connects them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.plan import SubTask
from artoo.contracts.request import Interrupt, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.control.hyperparameters import Hyperparameters
from artoo.llm.budget import Budget
from artoo.loops.asking import Asker
from artoo.loops.fast.agent_validator import AgentValidator
from artoo.loops.fast.executor import Executor, ExecutorLimits
from artoo.loops.medium.dispatcher import Dispatcher
from artoo.loops.medium.endings import Endings
from artoo.loops.medium.meta_validator import MetaValidator
from artoo.loops.medium.perceiver import Perceiver
from artoo.loops.medium.planner import Planner
from artoo.loops.medium.solver import Solver
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.evidence import EvidenceSource
from artoo.ports.ids import Ids
from artoo.ports.model import Model, Tier
from artoo.ports.surroundings import SurroundingsSource
from artoo.ports.tools import Tools
from artoo.runtime.effectors import POOL_KINDS, EffectorPool, Pair


@dataclass(frozen=True, slots=True)
class Hands:
    """What a task may do on this machine: its tools, and how its validators look at things."""

    tools: Tools
    evidence: EvidenceSource
    surroundings: SurroundingsSource


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """How a task is run. `strict_roles` makes every role call its model; checks still decide."""

    hyperparameters: Hyperparameters = Hyperparameters()
    executor: ExecutorLimits = ExecutorLimits()
    most_subtasks: int = 8
    strict_roles: bool = False
    ask_for_moves: bool = True


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
    ) -> None:
        self.task_id = task_id
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
                return await self._result()
            finally:
                self._bus.close_task(self.task_id)
                for task in running:
                    task.cancel()

    def interrupt(self, reason: str = "interrupted") -> None:
        """Asks R7 to end the task now, honestly."""
        self._user.publish(Interrupt(reason=reason))

    async def _result(self) -> FinalResult:
        while True:
            payload = (await self._user.receive()).payload
            if isinstance(payload, FinalResult):
                return payload

    def _roles(self) -> list[Coroutine[None, None, None]]:
        """Every role's life, each with a port of its own; all ports are open before the first message."""
        settings, hands, clock = self._settings, self._hands, self._clock
        pool = EffectorPool(self._bus.inbox(self.task_id, POOL_KINDS), self._pair)
        perceiver = Perceiver(*self._speaker(Role.PERCEIVER, Tier.BRAIN), clock, always_ask=settings.strict_roles)
        planner = Planner(
            *self._speaker(Role.PLANNER, Tier.BRAIN),
            hands.tools,
            hands.surroundings,
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
        )
        return [role.run() for role in (pool, perceiver, planner, dispatcher, meta_validator, solver)]

    def _pair(self, subtask: SubTask) -> Pair:
        """The effector agent of one subtask."""
        key = subtask.subtask_id
        executor_port, executor_asker = self._speaker(Role.EXECUTOR, Tier.TOOL, key)
        validator_port, validator_asker = self._speaker(Role.AGENT_VALIDATOR, Tier.TOOL, key)
        toolbox = self._hands.tools.toolbox(key, subtask.must_not)
        executor = Executor(executor_port, executor_asker, toolbox, self._settings.executor)
        validator = AgentValidator(
            validator_port,
            validator_asker,
            self._hands.evidence,
            max_retries=self._settings.hyperparameters.max_retries,
            always_ask=self._settings.strict_roles,
        )

        def close() -> None:
            executor_port.close()
            validator_port.close()

        return Pair(executor.run(), validator.run(), close)

    def _speaker(self, role: Role, tier: Tier, subtask_id: str | None = None) -> tuple[Port, Asker]:
        port = self._bus.port(role, self.task_id, subtask_id=subtask_id)
        return port, Asker(port, self._model, self._clock, tier)
