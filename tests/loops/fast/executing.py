"""One executor on a bus, with a model that takes scripted turns and tools that answer from a table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel, JsonValue

from artoo.bus.inprocess import InProcessBus
from artoo.bus.queues import WatchQueue
from artoo.contracts.base import Contract
from artoo.contracts.conversation import ModelTurn, Returned, ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import Usage
from artoo.contracts.execution import CallStatus, CorrectionSignal, ExecutionResult, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import SubTask
from artoo.contracts.roles import Role
from artoo.contracts.steering import Heard
from artoo.loops.asking import Asker
from artoo.loops.fast.executor import Executor
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier
from artoo.ports.surroundings import Surroundings
from artoo.ports.tools import Arguments, Parameter, Ticket, ToolSpec
from artoo.testing import FakeClock, SequentialIds

T = TypeVar("T", bound=BaseModel)
P = TypeVar("P", bound=Contract)

READ = ToolSpec("read_file", "show a file", (Parameter("path", "the file"),), 30, only_reads=True)
SHELL = ToolSpec("shell", "run bash", (Parameter("command", "the command"),), 60, body="command", writes=True)


def turn(*calls: tuple[str, dict[str, JsonValue]], text: str = "") -> ModelTurn:
    """A turn with these calls; its ids are given by the model."""
    requests = (
        ToolRequest(id=f"c{number}", name=name, arguments=given) for number, (name, given) in enumerate(calls)
    )
    return ModelTurn(text=text, calls=tuple(requests))


def shell(command: str) -> tuple[str, dict[str, JsonValue]]:
    return "shell", {"command": command}


def read(path: str) -> tuple[str, dict[str, JsonValue]]:
    return "read_file", {"path": path}


Turn = ModelTurn | Exception | Callable[[], Awaitable[ModelTurn]]


@dataclass(slots=True)
class TalkingModel:
    """Takes the turns of a script, with ids of their own, and keeps every conversation that it was shown."""

    turns: list[Turn]
    answers: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    usage: Usage = field(default_factory=lambda: Usage(estimated=True))
    shown: list[Conversation] = field(default_factory=list[Conversation])
    words: Sequence[str] = ()

    async def ask(self, question: Question[T]) -> Answer[T]:
        value = question.schema.model_validate(self.answers.pop(0))
        return Answer(value=value, text="", model="m", usage=Usage(), duration_ms=0, wire="")

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        self.shown.append(conversation)
        said = self.turns.pop(0)
        for words in self.words if on_text is not None else ():
            assert on_text is not None
            on_text(words)
        if isinstance(said, Exception):
            raise said
        made = said if isinstance(said, ModelTurn) else await said()
        number = len(self.shown)
        calls = tuple(call.model_copy(update={"id": f"{call.id}_{number}"}) for call in made.calls)
        turn = made.model_copy(update={"calls": calls})
        return Spoken(turn=turn, model="m", usage=self.usage, duration_ms=1, wire="chat")

    @property
    def last(self) -> list[str]:
        """The texts of the last conversation's results."""
        return [each.text for each in self.shown[-1].messages if isinstance(each, Returned)]


@dataclass(slots=True)
class TableOfTools:
    """Answers from a table of outputs by input; keeps the order in which calls began and ended."""

    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    specs: tuple[ToolSpec, ...] = (READ, SHELL)
    interrupted: tuple[ToolCall, ...] = ()
    events: list[str] = field(default_factory=list[str])
    waits: Mapping[str, int] = field(default_factory=dict[str, int])

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        given = " ".join(map(str, arguments.values()))
        self.events.append(f"begins {given}")
        for _ in range(self.waits.get(given, 0)):
            await asyncio.sleep(0)
        self.events.append(f"ends {given}")
        ok = given in self.outputs
        changes = ("/p/made",) if given.startswith("make ") else ()
        return ToolCall(
            tool=name,
            identity=(name,),
            input=given,
            status=CallStatus.OK if ok else CallStatus.ERROR,
            exit_code=0 if ok else 1,
            output=self.outputs.get(given, ""),
            changes=changes,
        )


@dataclass(slots=True)
class Quiet:
    """An empty directory in which nothing happens."""

    async def look(self, request: str) -> Surroundings:
        return Surroundings()

    async def news(self) -> tuple[str, ...]:
        return ()

    async def heard_last(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        return await self.heard(arrived)

    async def heard(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        return await arrived()


@dataclass(slots=True)
class Bench:
    """A running executor. `envelopes` is everything that it has said, as far as it was read."""

    bus: InProcessBus
    model: TalkingModel
    tools: TableOfTools
    executor: Executor
    watch: WatchQueue
    envelopes: list[Envelope] = field(default_factory=list[Envelope])
    patience: float = 10.0

    def give(self, **fields: object) -> None:
        """Dispatch the subtask."""
        given = {"subtask_id": "s1", "parent_task_id": "t1", "sequence": 1, "intent": "do it", **fields}
        dispatcher = self.bus.port(Role.DISPATCHER, "t1")
        dispatcher.publish(SubTask.model_validate(given), subtask_id="s1")

    def correct(self, what_to_do: str) -> None:
        """Refuse the newest result."""
        result = next(each for each in reversed(self.envelopes) if isinstance(each.payload, ExecutionResult))
        assert isinstance(result.payload, ExecutionResult)
        correction = CorrectionSignal(
            subtask_id="s1",
            attempt=result.payload.attempt,
            what_was_wrong="it is wrong",
            what_to_do=what_to_do,
            failed_criterion="right",
            failure_class=FailureClass.LOGICAL,
        )
        validator = self.bus.port(Role.AGENT_VALIDATOR, "t1", subtask_id="s1")
        validator.publish(correction, cause=result)

    def say(self, payload: Contract, role: Role = Role.USER, cause: Envelope | None = None) -> None:
        """Publish as somebody else."""
        port = self.bus.port(role, "t1")
        port.publish(payload, cause=cause, subtask_id=None if role is Role.USER and cause is None else "s1")

    async def until(self, kind: type[P]) -> P:
        """Read the stream until a message of this kind."""
        async with asyncio.timeout(self.patience):
            while True:
                envelope = await self.watch.receive()
                self.envelopes.append(envelope)
                if isinstance(envelope.payload, kind):
                    return envelope.payload

    def all(self, kind: type[P]) -> list[P]:
        """The payloads of one kind so far."""
        return [each.payload for each in self.envelopes if isinstance(each.payload, kind)]


@asynccontextmanager
async def bench(
    *turns: Turn, tools: TableOfTools | None = None, known: Known | None = None, asks: bool = False
) -> AsyncGenerator[Bench]:
    """An executor that waits for its subtask."""
    bus = InProcessBus(FakeClock(), SequentialIds())
    port = bus.port(Role.EXECUTOR, "t1", subtask_id="s1")
    model, table = TalkingModel(list(turns)), tools or TableOfTools()
    asker = Asker(port, model, FakeClock(), Tier.TOOL, known=known or Known())
    executor = Executor(port, asker, table, Quiet(), asks=asks)
    watch = bus.subscribe("test")
    running = asyncio.ensure_future(executor.run())
    try:
        yield Bench(bus, model, table, executor, watch)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
