"""`limits.subtask_seconds` bounds all attempts at a subtask together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

import pytest
from pydantic import BaseModel

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import Usage
from artoo.contracts.execution import CorrectionSignal, ExecutionResult, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import SubTask
from artoo.contracts.roles import Role
from artoo.loops.asking import Asker
from artoo.loops.fast.executor import Executor, ExecutorLimits
from artoo.ports.model import Answer, Question, Tier
from artoo.ports.surroundings import Surroundings
from artoo.ports.tools import Ticket, ToolSpec
from artoo.ports.waiting import waiting_for_a_person
from artoo.testing import FakeClock, SequentialIds

T = TypeVar("T", bound=BaseModel)


class NoTools:
    specs: tuple[ToolSpec, ...] = ()
    interrupted: tuple[ToolCall, ...] = ()

    async def call(self, name: str, arguments: Mapping[str, str], ticket: Ticket | None = None) -> ToolCall:
        raise AssertionError("no tool is offered")


@dataclass(slots=True)
class SlowModel:
    """Answers at once, but the loop's time goes on by as many seconds as are next in `takes`."""

    takes: list[float]
    with_a_person: bool = False
    moved: float = field(default=0.0)

    async def ask(self, question: Question[T]) -> Answer[T]:
        if self.with_a_person:
            with waiting_for_a_person():
                await self._pass()
        else:
            await self._pass()
        value = question.schema.model_validate({"tool": "answer", "input": "done"})
        return Answer(value=value, text="", model="m", usage=Usage(), duration_ms=0, wire="")

    async def _pass(self) -> None:
        self.moved += self.takes.pop(0)
        for _ in range(3):  # timers that are due now run before the answer
            await asyncio.sleep(0)


class NothingHere:
    """An empty directory."""

    async def look(self, request: str) -> Surroundings:
        return Surroundings()

    async def news(self) -> tuple[str, ...]:
        return ()

    async def went_on(self) -> bool:
        return False


async def attempts(
    monkeypatch: pytest.MonkeyPatch, model: SlowModel, count: int, deadline: datetime | None = None
) -> list[ExecutionResult]:
    """The results of `count` attempts, one after the other, of a subtask that has five seconds."""
    loop = asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + model.moved)
    bus = InProcessBus(FakeClock(), SequentialIds())
    port = bus.port(Role.EXECUTOR, "t1", subtask_id="s1")
    asker = Asker(port, model, FakeClock(), Tier.TOOL)
    executor = Executor(port, asker, NoTools(), ExecutorLimits(seconds=5.0), NothingHere())
    validator, dispatcher = bus.port(Role.AGENT_VALIDATOR, "t1", subtask_id="s1"), bus.port(Role.DISPATCHER, "t1")
    results: list[ExecutionResult] = []
    async with asyncio.TaskGroup() as group:
        running = group.create_task(executor.run())
        work = SubTask(subtask_id="s1", parent_task_id="t1", sequence=1, intent="say done", deadline=deadline)
        dispatcher.publish(work, subtask_id="s1")
        async for envelope in validator:
            if not isinstance(envelope.payload, ExecutionResult):
                continue
            results.append(envelope.payload)
            if len(results) == count:
                break
            validator.publish(correction(envelope), cause=envelope)
        port.close()
        running.cancel()
    return results


def correction(envelope: Envelope) -> CorrectionSignal:
    assert isinstance(envelope.payload, ExecutionResult)
    return CorrectionSignal(
        subtask_id="s1",
        attempt=envelope.payload.attempt,
        what_was_wrong="x",
        what_to_do="y",
        failed_criterion="z",
        failure_class=FailureClass.LOGICAL,
    )


async def test_attempts_share_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts that would each fit the limit do not fit it together: the second is cut off."""
    first, second = await attempts(monkeypatch, SlowModel([3.0, 3.0]), 2)
    assert first.infrastructure is None
    assert second.infrastructure == "timeout: the subtask's attempts took more than 5 s"


async def test_attempts_that_fit_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three attempts within the limit all come to their end."""
    results = await attempts(monkeypatch, SlowModel([1.0, 1.0, 1.0]), 3)
    assert [result.status for result in results] == ["completed"] * 3


async def test_nothing_is_left_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt after the time is up ends at once."""
    results = await attempts(monkeypatch, SlowModel([6.0, 0.0]), 2)
    assert all(result.infrastructure is not None for result in results)


async def test_a_persons_time_is_not_an_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person takes to answer counts for no attempt, neither this nor the next."""
    results = await attempts(monkeypatch, SlowModel([60.0, 60.0], with_a_person=True), 2)
    assert [result.status for result in results] == ["completed"] * 2


async def test_a_deadline_of_the_subtask_is_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds to its deadline are two seconds, although the configuration has five."""
    deadline = FakeClock().now() + timedelta(seconds=2)
    (cut,) = await attempts(monkeypatch, SlowModel([3.0]), 1, deadline)
    assert cut.infrastructure == "timeout: the subtask's attempts took more than 2 s"
    (whole,) = await attempts(monkeypatch, SlowModel([1.0]), 1, deadline)
    assert whole.infrastructure is None
