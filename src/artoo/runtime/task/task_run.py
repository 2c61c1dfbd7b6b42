"""Assemble the roles of one task, and run them until the result, with the settings of a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from artoo.contracts.confirmation import ConfirmationRequest, Words
from artoo.contracts.envelope import Envelope
from artoo.contracts.plan import MOST_SUBTASKS, SubTask
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import Interrupt, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.contracts.solution import Cost, FinalResult
from artoo.contracts.steering import PlanProposed, QuestionAnswered, QuestionAsked, UserMessage
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.asking import Asker, StandingSegments
from artoo.loops.before_work import BeforeWork
from artoo.loops.fast.agent_validator import AgentValidator
from artoo.loops.fast.agreement import SecondLook
from artoo.loops.fast.executor import Executor
from artoo.loops.heuristics import Heuristics
from artoo.loops.medium.advice import Counsel
from artoo.loops.medium.allowance import Allowance
from artoo.loops.medium.dispatcher import Dispatcher
from artoo.loops.medium.endings import Endings
from artoo.loops.medium.experience import Experience
from artoo.loops.medium.meta_validator import MetaValidator
from artoo.loops.medium.perceiver import Perceiver
from artoo.loops.medium.planner import Planner
from artoo.loops.medium.solver import Solver
from artoo.loops.medium.trajectory import Trajectory
from artoo.ports.bus import Port
from artoo.ports.model import Known, Tier
from artoo.ports.tools import ToolSpec
from artoo.runtime.approvals.consent import Answers, decision_on, plan_shown, question_of
from artoo.runtime.task.executor_pool import POOL_KINDS, EffectorPool, Pair
from artoo.runtime.task.observed_sources import (
    Eyes,
    WatchedEvidence,
    WatchedRecall,
    WatchedSurroundings,
    WatchedTurns,
)
from artoo.runtime.task.role_context import Sight, TaskContext


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings of one task. `strict_roles` makes every role call its model, although checks still decide the
    criteria.

    `tuned`: the solver's hyperparameters for single types of tasks, by the slug of the intent. The settings of
    other roles (retries, replans) do not depend on the type. `persona` is the accepted part of the T layer.
    `standing` are the segments of the agent for which the task is done, if there is one. `brain`, `tool`: what is
    known about the model of each tier. `project` is the project directory. `apply` is the mode that decides which
    changes are applied without approval, and `unasked` are the classes of these changes. `allowance`: the task's
    budgets. `approve`: true if the user must approve each plan.
    """

    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    tuned: Mapping[str, Hyperparameters] = field(default_factory=dict[str, Hyperparameters])
    allowance: Allowance = field(default_factory=Allowance)
    approve: bool = False
    most_subtasks: int = MOST_SUBTASKS
    strict_roles: bool = False
    ask_for_moves: bool = True
    second_look: SecondLook = SecondLook.AUTO
    persona: str = ""
    standing: StandingSegments = field(default_factory=StandingSegments)
    brain: Known = field(default_factory=Known)
    tool: Known = field(default_factory=Known)
    heuristics: Heuristics = field(default_factory=Heuristics)
    project: str = ""
    apply: ApplyMode = ApplyMode.NEW
    unasked: frozenset[ChangeClass] = ApplyMode.NEW.unasked

    @property
    def replans(self) -> int:
        """Return how many plans may be made after the first one. It is 0 if no model plans."""
        unplanned = self.brain.small and self.heuristics.unplanned
        return 0 if unplanned else self.hyperparameters.max_replans


_ROLES = (Role.PERCEIVER, Role.PLANNER, Role.DISPATCHER, Role.META_VALIDATOR, Role.SOLVER)
_KEPT = {Role.AGENT_VALIDATOR: (0.04, 5.0), Role.META_VALIDATOR: (0.02, 2.5)}
"""Roles that only confirm results, each with two numbers. The first is the share of the task's time that is
reserved for later roles. The second is the maximum of this time in seconds."""


class Leader(Protocol):
    """Repeats the earlier messages of a task to its roles, and then lets the roles run by themselves."""

    async def run(self) -> None:
        """Return when the roles run by themselves. Raises an error if they cannot."""
        ...


class TaskRun:
    """Assembles the roles of one task, and runs them until the solver (R7) has published the result."""

    def __init__(
        self,
        task_id: str,
        stage: TaskContext,
        settings: TaskSettings,
        spent: Callable[[], Cost],
        answers: Answers | None = None,
        trajectory: Trajectory | None = None,
        raise_limits: Callable[[int, int], None] | None = None,
    ) -> None:
        """Create the task. `spent` returns the cost of the task's models so far. `answers` answers the questions of
        the gate. `raise_limits` is called with the numbers of calls and tokens that belong to the plan's effort.
        `trajectory` replaces the solver's control law in experiments.
        """
        self._trajectory = trajectory
        self.task_id = task_id
        self._stage = stage
        self._settings = settings
        self._spent = spent
        self._raise_limits = raise_limits
        self._answers = answers or Answers()
        self._standing = settings.standing.after(settings.persona)
        self._user = stage.port(Role.USER)
        self._ports: dict[Role, Port] = {}
        self._executors: list[Executor] = []
        self._before = BeforeWork()
        self._solver: Solver | None = None

    async def run(self, opened: TaskOpened, request: UserRequest, claim: Callable[[], None]) -> FinalResult:
        """Publish the first message and the request. Return the FinalResult. Afterwards no role is running.

        `claim` acquires the task's lock. It is called before a message reaches the log, because from then on
        another process could resume the task. Errors of the roles are raised in an ExceptionGroup.
        """
        claim()

        async def begin() -> None:
            self._user.publish(opened)
            self._user.publish(request)

        return await self._play(begin)

    async def follow(self, leader: Leader) -> FinalResult:
        """Run a task that was begun earlier. `leader` repeats the messages that were published before.

        Errors of the leader are raised in an ExceptionGroup.
        """
        return await self._play(leader.run)

    async def _play(self, begin: Callable[[], Coroutine[None, None, None]]) -> FinalResult:
        """Run all roles until the solver has published the result."""
        # All ports are open before `begin` publishes the first message, so that no role misses it.
        self._ports = {role: self._stage.port(role) for role in _ROLES}
        async with asyncio.TaskGroup() as group:
            running: list[asyncio.Task[None]] = []
            try:
                running += [group.create_task(life) for life in (begin(), *self._roles())]
                return await self._result(
                    lambda envelope: running.append(group.create_task(self._answer(envelope)))
                )
            finally:
                self._stage.close()
                for task in running:
                    task.cancel()

    def interrupt(self, reason: str = "interrupted") -> None:
        """Ask the solver to end the task now with an honest result."""
        self._user.publish(Interrupt(reason=reason))

    def send(self, message: UserMessage) -> None:
        """Publish a message of the user, which may also be a request to interrupt the current turn."""
        self._user.publish(message)

    async def _result(self, ask: Callable[[Envelope], None]) -> FinalResult:
        """Wait for the end of the task. Until then, pass every question of the gate to `ask`."""
        while True:
            envelope = await self._user.receive()
            if isinstance(envelope.payload, FinalResult):
                return envelope.payload
            if isinstance(envelope.payload, (ConfirmationRequest, QuestionAsked, PlanProposed)):
                ask(envelope)

    async def _answer(self, question: Envelope) -> None:
        match question.payload:
            case ConfirmationRequest() as request:
                self._user.publish(await self._answers.answer(request), cause=question)
            case QuestionAsked() as asked:
                said = await self._answers.words(question_of(asked))
                answer = said.text if isinstance(said, Words) else ""
                answered = QuestionAnswered(subtask_id=asked.subtask_id, answer=answer)
                self._user.publish(answered, cause=question, subtask_id=asked.subtask_id)
            case PlanProposed() as proposed:
                self._user.publish(decision_on(await self._answers.words(plan_shown(proposed))), cause=question)
            case _:
                return

    def _roles(self) -> list[Coroutine[None, None, None]]:
        """Return the coroutine of every role."""
        stage, settings = self._stage, self._settings
        pool = EffectorPool(stage.inbox(POOL_KINDS), self._pair)
        dispatcher = Dispatcher(self._ports[Role.DISPATCHER], stage.ids(Role.DISPATCHER))
        port, asker = self._speaker(Role.META_VALIDATOR, Tier.BRAIN)
        meta_validator = MetaValidator(
            port,
            asker,
            WatchedEvidence(stage.hands.whole.evidence, stage.eyes(port)),
            WatchedSurroundings(stage.hands.whole.surroundings, stage.eyes(port)),
            stage.clock,
            max_replans=settings.replans,
            always_ask=settings.strict_roles,
            unasked=settings.unasked,
            before=self._before,
        )
        self._solver = self._made_solver()
        if stage.hands.processes is not None:
            stage.hands.processes.time_left = self._solver.time_left
        perceiver, planner = self._perceiver(), self._planner()
        roles = (perceiver, pool, dispatcher, meta_validator, self._solver)
        questions = stage.hands.questions
        asking = (questions,) if questions is not None else ()
        return [*(role.run() for role in (*asking, *roles)), self._prepared(planner)]

    def _perceiver(self) -> Perceiver:
        return Perceiver(*self._speaker(Role.PERCEIVER, Tier.BRAIN), always_ask=self._settings.strict_roles)

    def _planner(self) -> Planner:
        stage = self._stage
        port, asker = self._speaker(Role.PLANNER, Tier.BRAIN)
        recall = WatchedRecall(stage.memory.recall, stage.eyes(port)) if stage.memory is not None else None
        return Planner(
            port,
            asker,
            self._offered,
            WatchedSurroundings(stage.hands.whole.surroundings, stage.eyes(port)),
            Counsel(port, recall, self._settings.project),
            most_subtasks=self._settings.most_subtasks,
            heuristics=self._settings.heuristics,
            approve=self._settings.approve,
        )

    def _made_solver(self) -> Solver:
        stage, settings = self._stage, self._settings
        port, asker = self._speaker(Role.SOLVER, Tier.BRAIN)
        return Solver(
            port,
            Endings(asker, ask_for_moves=settings.ask_for_moves and not settings.brain.small),
            self._offered,
            stage.clock,
            float(settings.hyperparameters.time_budget_ms),
            self._cost,
            stage.watch(),
            self._trajectory or Trajectory(settings.hyperparameters),
            memory=self._experience(port),
            tuned=settings.tuned,
            allowance=settings.allowance,
            raise_limits=self._raise_limits,
        )

    def _time_left(self, share: float, most: float) -> float:
        """Return the seconds that are left to the task, without the time that is reserved for later roles."""
        # The solver (R7) is created first, before any role can ask for a confirmation.
        assert self._solver is not None
        return self._solver.time_left() - min(most, share * self._solver.budget_ms / 1_000)

    def _offered(self) -> tuple[ToolSpec, ...]:
        """Return the descriptions of the tools for the planner and the solver, which cannot run tools."""
        return self._stage.hands.tools.specs

    async def _prepared(self, planner: Planner) -> None:
        """Start the planner when its tools are prepared. Until then the TaskSpec stays in its inbox."""
        await self._stage.prepared(self._user)
        await planner.run()

    def _cost(self, elapsed_ms: int) -> Cost:
        """Return the cost of the task. It includes the calls of subtasks that never had an outcome."""
        calls = sum(executor.calls for executor in self._executors)
        return self._spent().model_copy(update={"tool_calls": calls, "elapsed_ms": elapsed_ms})

    def _experience(self, port: Port) -> Experience | None:
        stage = self._stage
        if stage.memory is None:
            return None
        recall, ids = WatchedRecall(stage.memory.recall, stage.eyes(port)), stage.ids(Role.SOLVER)
        return Experience(port, recall, stage.memory.remember, stage.clock, ids, self._settings.project)

    def _pair(self, subtask: SubTask) -> Pair:
        """Create the executor and the validator of one subtask."""
        key, stage, settings = subtask.subtask_id, self._stage, self._settings
        port, asker = self._speaker(Role.EXECUTOR, Tier.TOOL, key)
        toolbox = stage.hands.tools.toolbox(key, subtask.must_not, subtask.cautions)
        sight = stage.hands.sight(key)
        surroundings = WatchedTurns(sight.surroundings, stage.eyes(port, key))
        executor = Executor(
            port,
            asker,
            toolbox,
            surroundings,
            settings.heuristics,
            project=settings.project,
            unasked=settings.unasked,
            asks=self._answers.confirm is not None,
            before=self._before,
        )
        self._executors.append(executor)
        validators_port, validators_asker = self._speaker(Role.AGENT_VALIDATOR, Tier.TOOL, key)
        validator = self._validator(validators_port, validators_asker, stage.eyes(validators_port, key), sight)

        def close() -> None:
            port.close()
            validators_port.close()

        return Pair(executor.run(), validator.run(), close)

    def _validator(self, port: Port, asker: Asker, eyes: Eyes, sight: Sight) -> AgentValidator:
        settings = self._settings
        return AgentValidator(
            port,
            asker,
            WatchedEvidence(sight.evidence, eyes),
            WatchedSurroundings(sight.surroundings, eyes),
            max_retries=settings.hyperparameters.max_retries,
            always_ask=settings.strict_roles,
            second_look=settings.second_look if settings.heuristics.second_way else SecondLook.NEVER,
            before=self._before,
        )

    def _speaker(self, role: Role, tier: Tier, subtask_id: str | None = None) -> tuple[Port, Asker]:
        stage = self._stage
        port = self._ports[role] if subtask_id is None else stage.port(role, subtask_id)
        model = stage.model(role, subtask_id, partial(self._time_left, *_KEPT[role]) if role in _KEPT else None)
        known = self._settings.brain if tier is Tier.BRAIN else self._settings.tool
        return port, Asker(port, model, stage.clock, tier, self._standing, known)
