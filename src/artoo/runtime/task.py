"""One task from request to result: all roles on one stage, and nothing else that connects them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.plan import SubTask
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import Interrupt, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, FinalResult
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.asking import Asker, Standing
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
from artoo.ports.model import Tier
from artoo.ports.surroundings import SurroundingsSource
from artoo.runtime.answers import Answers
from artoo.runtime.early_look import EarlyLook
from artoo.runtime.effectors import POOL_KINDS, EffectorPool, Pair
from artoo.runtime.sights import WatchedEvidence, WatchedRecall, WatchedSurroundings
from artoo.runtime.stage import Stage


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """How a task is run. `strict_roles` makes every role call its model; checks still decide.

    `persona` is the accepted part of the T layer; `standing` the agent that the task is done for, if it is one's.
    """

    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    executor: ExecutorLimits = field(default_factory=ExecutorLimits)
    most_subtasks: int = 8
    strict_roles: bool = False
    ask_for_moves: bool = True
    second_look: SecondLook = SecondLook.AUTO
    persona: str = ""
    standing: Standing = field(default_factory=Standing)


class Leader(Protocol):
    """Who tells the roles of a task what was said before, and then lets them go on (runtime.replaying)."""

    async def run(self) -> None:
        """Returns when the roles are on their own; raises what makes that impossible."""
        ...


class TaskRun:
    """Assembles the roles of one task and runs them until R7 has spoken."""

    def __init__(
        self,
        task_id: str,
        stage: Stage,
        settings: TaskSettings,
        spent: Callable[[], Cost],
        answers: Answers | None = None,
    ) -> None:
        """`spent` says what the models have cost so far; `answers` are the user's to the gate's questions."""
        self.task_id = task_id
        self._stage = stage
        self._settings = settings
        self._spent = spent
        self._answers = answers or Answers()
        self._user = stage.port(Role.USER)

    async def run(self, opened: TaskOpened, request: UserRequest) -> FinalResult:
        """Publishes how it runs and the request, and returns the FinalResult; afterwards nothing runs any more."""
        early = EarlyLook(self._stage.hands.surroundings, request.text)

        def begin() -> None:
            self._user.publish(opened)
            self._user.publish(request)

        return await self._play(early, begin, early.run())

    async def follow(self, leader: Leader) -> FinalResult:
        """As `run`, for a task that has begun before: its stream up to now comes from `leader`.

        Raises what the leader raises, in an ExceptionGroup.
        """
        return await self._play(self._stage.hands.surroundings, _nothing, leader.run())

    async def _play(
        self, surroundings: SurroundingsSource, begin: Callable[[], None], beside: Coroutine[None, None, None]
    ) -> FinalResult:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(role) for role in (*self._roles(surroundings), beside)]
            begin()
            try:
                return await self._result(
                    lambda envelope: running.append(group.create_task(self._answer(envelope)))
                )
            finally:
                self._stage.close()
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

    def _roles(self, surroundings: SurroundingsSource) -> list[Coroutine[None, None, None]]:
        """Every role's life, each with a port of its own; all ports are open before the first message."""
        stage, settings = self._stage, self._settings
        pool = EffectorPool(stage.inbox(POOL_KINDS), self._pair)
        perceiver = Perceiver(*self._speaker(Role.PERCEIVER, Tier.BRAIN), always_ask=settings.strict_roles)
        dispatcher = Dispatcher(stage.port(Role.DISPATCHER), stage.ids(Role.DISPATCHER))
        port, asker = self._speaker(Role.META_VALIDATOR, Tier.BRAIN)
        meta_validator = MetaValidator(
            port,
            asker,
            WatchedEvidence(stage.hands.evidence, stage.eyes(port)),
            stage.clock,
            max_replans=settings.hyperparameters.max_replans,
            always_ask=settings.strict_roles,
        )
        roles = (pool, self._planner(surroundings), dispatcher, meta_validator, self._solver())
        questions = stage.hands.questions
        asking = (questions,) if questions is not None else ()
        return [*(role.run() for role in (*asking, *roles)), self._prepared(perceiver)]

    def _planner(self, surroundings: SurroundingsSource) -> Planner:
        stage = self._stage
        port, asker = self._speaker(Role.PLANNER, Tier.BRAIN)
        return Planner(
            port,
            asker,
            stage.hands.tools,
            WatchedSurroundings(surroundings, stage.eyes(port)),
            recall=WatchedRecall(stage.memory.recall, stage.eyes(port)) if stage.memory is not None else None,
            most_subtasks=self._settings.most_subtasks,
        )

    def _solver(self) -> Solver:
        stage, settings = self._stage, self._settings
        port, asker = self._speaker(Role.SOLVER, Tier.BRAIN)
        return Solver(
            port,
            Endings(asker, ask_for_moves=settings.ask_for_moves),
            stage.hands.tools,
            stage.clock,
            settings.hyperparameters,
            self._spent,
            memory=self._experience(port),
            watch=stage.watch(),
        )

    async def _prepared(self, perceiver: Perceiver) -> None:
        """R1 reads the request when the tools are there that the plan may use; it waits in the inbox."""
        await self._stage.prepared(self._user)
        await self._stage.durable()  # the request is in the log before anything is asked for it
        await perceiver.run()

    def _experience(self, port: Port) -> Experience | None:
        stage = self._stage
        if stage.memory is None:
            return None
        recall = WatchedRecall(stage.memory.recall, stage.eyes(port))
        return Experience(port, recall, stage.memory.remember, stage.clock, stage.ids(Role.SOLVER))

    def _pair(self, subtask: SubTask) -> Pair:
        """The effector agent of one subtask."""
        key, stage, settings = subtask.subtask_id, self._stage, self._settings
        executor_port, executor_asker = self._speaker(Role.EXECUTOR, Tier.TOOL, key)
        validator_port, validator_asker = self._speaker(Role.AGENT_VALIDATOR, Tier.TOOL, key)
        toolbox = stage.hands.tools.toolbox(key, subtask.must_not, subtask.cautions)
        executor = Executor(executor_port, executor_asker, toolbox, settings.executor)
        eyes = stage.eyes(validator_port, key)
        validator = AgentValidator(
            validator_port,
            validator_asker,
            WatchedEvidence(stage.hands.evidence, eyes),
            WatchedSurroundings(stage.hands.surroundings, eyes),
            max_retries=settings.hyperparameters.max_retries,
            always_ask=settings.strict_roles,
            second_look=settings.second_look,
        )

        def close() -> None:
            executor_port.close()
            validator_port.close()

        return Pair(executor.run(), validator.run(), close)

    def _speaker(self, role: Role, tier: Tier, subtask_id: str | None = None) -> tuple[Port, Asker]:
        stage = self._stage
        port = stage.port(role, subtask_id)
        model = stage.model(role, subtask_id)
        settings = self._settings
        return port, Asker(port, model, stage.clock, tier, settings.persona, stage.durable, settings.standing)


def _nothing() -> None:
    """Whoever leads begins."""
