"""artoo as a peer of a shared measuring harness, whose job text and worker loop are its module `common`.

Copy or link this file into the harness as `peer_artoo.py`. The harness fixes the stages and their answers, so the
roles here only ask and pass on; bus, ports, inboxes, effector pool, prompts, client and task log are artoo's own.
What the whole runtime costs is measured by overhead.py.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import common
from pydantic import BaseModel

from artoo.bus.inprocess import InProcessBus
from artoo.bus.ports import RolePort
from artoo.bus.spool import SpoolingTap
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import (
    CriterionJudged,
    CriterionVerdict,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
)
from artoo.contracts.plan import DispatchManifest, ManifestEntry, Plan, PlannedSubTask, SubTask
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive, FinalResult, OutcomeSummary
from artoo.llm.budget import Budget, BudgetedModel
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.loops.asking import Asker
from artoo.loops.role import listen
from artoo.ports.model import Model, Tier
from artoo.prompts.segments import Segment
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.task.executor_pool import POOL_KINDS, EffectorPool, Pair
from artoo.tasklog.writer import TaskLog

T = TypeVar("T", bound=BaseModel)


class Words(BaseModel):
    """An answer in words."""

    text: str


class Lookup(BaseModel):
    """The tool call of the execution stage."""

    query: str


@dataclass
class Task:
    """One run of the harness' job; `parts` 0 is a chain."""

    bus: InProcessBus
    model: Model
    clock: SystemClock
    ids: UuidIds
    parts: int

    async def run(self) -> str:
        """Publishes the request and waits for the result."""
        self.task_id = self.ids.new()
        user = self.bus.port(Role.USER, self.task_id)
        pool = EffectorPool(self.bus.inbox(self.task_id, POOL_KINDS), self._pair)
        stages = (
            (Role.PERCEIVER, self._perceive),
            (Role.PLANNER, self._plan),
            (Role.DISPATCHER, self._dispatch),
            (Role.META_VALIDATOR, self._merge),
            (Role.SOLVER, self._solve),
        )
        self.ports = {role: self.bus.port(role, self.task_id) for role, _ in stages}
        self.outcomes: list[SubTaskOutcome] = []
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(listen(self.ports[role], handle)) for role, handle in stages]
            running.append(group.create_task(pool.run()))
            user.publish(UserRequest(text=common.GOAL, project="/", workspace="/"))
            async for envelope in user:
                if isinstance(envelope.payload, FinalResult):
                    break
            self.bus.close_task(self.task_id)
            for each in running:
                each.cancel()
        return envelope.payload.output

    async def _ask(
        self, port: RolePort, contract: str, schema: type[T], stage: str, text: str, cause: Envelope
    ) -> T:
        asker = Asker(port, self.model, self.clock, Tier.BRAIN)
        segments = {Segment.TASK: common.user(stage, text)}
        return await asker.ask(contract, schema, segments, cause=cause, max_tokens=600)

    async def _perceive(self, cause: Envelope) -> None:
        port, intent = self.ports[Role.PERCEIVER], common.GOAL
        if not self.parts:  # the fan-out of the harness begins with the plan
            percept = await self._ask(port, "TaskSpec", common.Percept, "perceive", intent, cause)
            intent = percept.model_dump_json()
        port.publish(TaskSpec(task_id="goal", intent=intent, raw_input=common.GOAL), cause=cause)

    async def _plan(self, cause: Envelope) -> None:
        port = self.ports[Role.PLANNER]
        plan = await self._ask(port, "Plan", common.Plan, "plan", cause.payload.intent, cause)
        if self.parts:
            texts = [f"Part {number}: {plan.steps[0]}" for number in range(self.parts)]
        else:
            texts = [plan.model_dump_json()]
        port.publish(Plan(subtasks=tuple(PlannedSubTask(intent=text) for text in texts)), cause=cause)

    async def _dispatch(self, cause: Envelope) -> None:
        if not isinstance(cause.payload, Plan):
            return
        port = self.ports[Role.DISPATCHER]
        subtasks = [
            SubTask(subtask_id=self.ids.new(), parent_task_id=self.task_id, sequence=1, intent=planned.intent)
            for planned in cause.payload.subtasks
        ]
        entries = tuple(
            ManifestEntry(subtask_id=each.subtask_id, sequence=1, intent=each.intent) for each in subtasks
        )
        port.publish(DispatchManifest(task_id=self.task_id, round=1, subtasks=entries), cause=cause)
        for subtask in subtasks:
            port.publish(subtask, cause=cause, subtask_id=subtask.subtask_id)

    def _pair(self, subtask: SubTask) -> Pair:
        executor = self.bus.port(Role.EXECUTOR, self.task_id, subtask_id=subtask.subtask_id)
        validator = self.bus.port(Role.AGENT_VALIDATOR, self.task_id, subtask_id=subtask.subtask_id)

        def close() -> None:
            executor.close()
            validator.close()

        return Pair(
            listen(executor, lambda envelope: self._execute(executor, envelope)),
            listen(validator, lambda envelope: self._validate(validator, envelope)),
            close,
        )

    async def _execute(self, port: RolePort, cause: Envelope) -> None:
        if not isinstance(cause.payload, SubTask):
            return
        subtask, stage, calls = cause.payload, "work1" if self.parts else "execute", ()
        if not self.parts:
            wanted = await self._ask(port, "ExecutorStep", Lookup, stage, subtask.intent, cause)
            output = common.lookup_impl(wanted.query)
            call = ToolCall(tool="lookup", identity=("lookup",), target=wanted.query, output=output)
            port.publish(ToolCalled(subtask_id=subtask.subtask_id, attempt=1, call=call), cause=cause)
            calls = (call,)
        told = "\n".join([subtask.intent, *(call.line() for call in calls)])
        answer = await self._ask(port, "ExecutorStep", Words, stage, told, cause)
        result = ExecutionResult(
            subtask_id=subtask.subtask_id, attempt=1, status="completed", output=answer.text, tool_calls=calls
        )
        port.publish(result, cause=cause)

    async def _validate(self, port: RolePort, cause: Envelope) -> None:
        result = cause.payload
        if not isinstance(result, ExecutionResult):
            return
        schema, stage = (Words, "work2") if self.parts else (common.Verdict, "validate")
        report = await self._ask(port, "ValidationReport", schema, stage, result.output, cause)
        verdict = CriterionVerdict(criterion="done", verdict="pass", evidence=report.model_dump_json())
        port.publish(CriterionJudged(subtask_id=result.subtask_id, verdict=verdict), cause=cause)
        outcome = SubTaskOutcome(
            subtask_id=result.subtask_id,
            parent_task_id=self.task_id,
            status="matched",
            output=result.output,
            criteria_verdicts=(verdict,),
            tool_calls=result.tool_calls,
        )
        port.publish(outcome, cause=cause)

    async def _merge(self, cause: Envelope) -> None:
        if not isinstance(cause.payload, SubTaskOutcome):
            return
        self.outcomes.append(cause.payload)
        if len(self.outcomes) < max(1, self.parts):
            return
        port = self.ports[Role.META_VALIDATOR]
        merged = "\n".join(outcome.output for outcome in self.outcomes)
        answer = await self._ask(port, "MergeReport", Words, "merge", merged, cause)
        summary = OutcomeSummary(
            task_id=self.task_id, merged_output=answer.text, summary=answer.text, outcomes=tuple(self.outcomes)
        )
        port.publish(summary, cause=cause)

    async def _solve(self, cause: Envelope) -> None:
        if isinstance(cause.payload, OutcomeSummary):
            summary = cause.payload
            result = FinalResult(
                task_id=self.task_id,
                summary=summary.summary,
                output=summary.merged_output,
                directive=Directive.ACCEPT,
            )
            self.ports[Role.SOLVER].publish(result, cause=cause)


class Peer:
    """What lives as long as the worker: the bus, the model and the log."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def setup(self) -> None:
        """Opens everything. The log is written until the process ends."""
        self._clock, self._ids = SystemClock(), UuidIds()
        self._bus = InProcessBus(self._clock, self._ids)
        spool = SpoolingTap(self._home / "spool", name="log")
        self._bus.attach(spool)
        self._log = asyncio.create_task(TaskLog(self._home, spool).run())
        transport = HttpTransport(common.BASE, common.KEY, limit=128)
        self._model = EndpointModel(transport, common.MODEL, self._clock)

    async def chain(self) -> str:
        """Six calls."""
        return await self._run(0)

    async def fan(self, parts: int) -> str:
        """A plan, two calls a part, a merge."""
        return await self._run(parts)

    async def _run(self, parts: int) -> str:
        model = BudgetedModel(self._model, Budget())
        return await Task(self._bus, model, self._clock, self._ids, parts).run()


def main(serve: Callable[[Callable[[], Awaitable[None]], object, object], None]) -> None:
    """Serves the harness until it closes the input."""
    with tempfile.TemporaryDirectory(prefix="artoo-peer-") as directory:
        peer = Peer(Path(directory))
        serve(peer.setup, peer.chain, peer.fan)


if __name__ == "__main__":
    main(common.serve)
