"""Samples in flight: the checks of a subtask while its executor works on, and no model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

from executing import Quiet, TalkingModel

from artoo.bus.inprocess import InProcessBus
from artoo.bus.queues import WatchQueue
from artoo.contracts.base import Contract
from artoo.contracts.criteria import CommandSucceeds, Criterion, FileExists, OutputMatches
from artoo.contracts.execution import CallStatus, ExecutionResult, SubTaskOutcome, ToolCall
from artoo.contracts.plan import SubTask
from artoo.contracts.roles import Role
from artoo.contracts.steering import Sampled, SampleDue
from artoo.loops.asking import Asker
from artoo.loops.fast.agent_validator import AgentValidator
from artoo.ports.evidence import CommandView, EvidenceSource, FileView, Trial
from artoo.ports.model import Tier
from artoo.ports.surroundings import SurroundingsSource
from artoo.testing import FakeClock, SequentialIds

P = TypeVar("P", bound=Contract)


@dataclass(slots=True)
class Disk:
    """Files by name; a command succeeds if it names one that is there. Counts every look."""

    files: set[str] = field(default_factory=set[str])
    looks: list[str] = field(default_factory=list[str])

    async def file(self, path: str) -> FileView:
        self.looks.append(path)
        return FileView(exists=path in self.files, size=1)

    async def command(self, command: str) -> CommandView:
        self.looks.append(command)
        return CommandView(exit_code=0 if command.split()[-1] in self.files else 1, output="")

    async def trial(self, language: str, program: str) -> Trial:
        raise AssertionError("no trial is due")

    async def difference(self, limit: int = 0) -> str:
        return ""


@dataclass(slots=True)
class Bench:
    """A running validator."""

    bus: InProcessBus
    disk: Disk
    watch: WatchQueue

    def say(self, payload: Contract, role: Role) -> None:
        own = "s1" if role is Role.EXECUTOR else None
        self.bus.port(role, "t1", subtask_id=own).publish(payload, subtask_id="s1")

    async def until(self, kind: type[P]) -> P:
        async with asyncio.timeout(10):
            while True:
                envelope = await self.watch.receive()
                if isinstance(envelope.payload, kind):
                    return envelope.payload


@asynccontextmanager
async def bench(*files: str) -> AsyncGenerator[Bench]:
    """A validator whose model has no answers: asking it fails the test."""
    bus, disk = InProcessBus(FakeClock(), SequentialIds()), Disk(set(files))
    port = bus.port(Role.AGENT_VALIDATOR, "t1", subtask_id="s1")
    asker = Asker(port, TalkingModel([]), FakeClock(), Tier.TOOL)
    source, around = cast(EvidenceSource, disk), cast(SurroundingsSource, Quiet())
    running = asyncio.ensure_future(AgentValidator(port, asker, source, around, max_retries=2).run())
    try:
        yield Bench(bus, disk, bus.subscribe("test"))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


MADE = Criterion(text="made", check=FileExists(path="new"))
TESTED = Criterion(text="tested", check=CommandSucceeds(command="test -s new"))
THERE = Criterion(text="there", check=FileExists(path="old"))
SAID = Criterion(text="said", check=OutputMatches(regex="x"))
WELL = Criterion(text="well done")


def subtask(*criteria: Criterion) -> SubTask:
    return SubTask(subtask_id="s1", parent_task_id="t1", sequence=1, intent="do it", success_criteria=criteria)


def call(status: CallStatus, said: str = "") -> ToolCall:
    return ToolCall(tool="shell", identity=("shell:make",), input="make", status=status, error_output=said)


async def test_a_sample_has_a_verdict_on_every_criterion_and_counts_the_failures_since() -> None:
    """What looks at files is checked; what held before the work, needs an answer or a judge is open."""
    async with bench("old") as room:
        room.say(subtask(MADE, TESTED, THERE, SAID, WELL), Role.DISPATCHER)
        refused = call(CallStatus.REFUSED)
        calls = (call(CallStatus.OK), call(CallStatus.ERROR, "wrong"), call(CallStatus.TIMEOUT), refused)
        room.say(SampleDue(subtask_id="s1", attempt=1, turn=8, calls=calls), Role.EXECUTOR)
        first = await room.until(Sampled)
        assert {each.criterion: each.verdict for each in first.verdicts} == {
            "made": "fail",
            "tested": "fail",
            "there": "open",
            "said": "open",
            "well done": "open",
        }
        assert (first.turn, first.logical, first.environmental) == (8, 1, 1)
        room.disk.files.add("new")
        room.say(SampleDue(subtask_id="s1", attempt=1, turn=16, calls=(call(CallStatus.OK),)), Role.EXECUTOR)
        second = await room.until(Sampled)
        assert [each.verdict for each in second.verdicts[:2]] == ["pass", "pass"]
        assert (second.logical, second.environmental) == (0, 0)


async def test_a_sample_leaves_no_trace_in_the_attempts() -> None:
    """It counts as no attempt, and corrects nobody."""
    async with bench() as room:
        room.say(subtask(MADE), Role.DISPATCHER)
        room.say(SampleDue(subtask_id="s1", attempt=1, turn=8), Role.EXECUTOR)
        await room.until(Sampled)
        room.disk.files.add("new")
        made = call(CallStatus.OK).model_copy(update={"output": "made new", "changes": ("new",)})
        result = ExecutionResult(subtask_id="s1", attempt=1, status="completed", output="made", tool_calls=(made,))
        room.say(result, Role.EXECUTOR)
        outcome = await room.until(SubTaskOutcome)
        assert outcome.status == "matched" and outcome.corrections == 0
        assert [each.attempts for each in outcome.criteria_verdicts] == [1]
