"""Recorded models, tools, sources and ids, which answer from the log, then live."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from artoo.contracts.errors import (
    BudgetExhausted,
    ContextOverflow,
    MemoryStoreError,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnreachable,
)
from artoo.contracts.events import ModelCalled, spent_by
from artoo.contracts.execution import ToolCall
from artoo.contracts.memory import Megram
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.recording import Source
from artoo.contracts.roles import Role
from artoo.llm.text.reading import Unreadable, read_answer
from artoo.loops.fast.conversation import CONTRACT
from artoo.ports.bus import Port
from artoo.ports.ids import Ids
from artoo.ports.model import Answer, Conversation, Model, OnText, Question, Spoken
from artoo.ports.remember import Remember
from artoo.ports.tools import Arguments, Departure, Ticket, Toolbox, Tools, ToolSpec
from artoo.runtime.replay.conductor import Conductor
from artoo.runtime.replay.recording import Speaker
from artoo.runtime.task.observed_sources import LiveEyes

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class NobodyToAsk:
    """The model of a replay, for questions after the end of its log. It is never asked in practice, because a
    replay does not go live."""

    async def ask(self, question: Question[M]) -> Answer[M]:
        """Refuse the question. Raises ModelUnreachable."""
        raise ModelUnreachable(f"a replay asks no model (contract {question.contract})")

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Refuse the conversation. Raises ModelUnreachable."""
        raise ModelUnreachable(f"a replay asks no model (contract {conversation.contract})")


class RecordedModel:
    """The model of one role, which answers from the log. Implements ports.model.Model."""

    def __init__(self, conductor: Conductor, speaker: Speaker, beyond: Model) -> None:
        self._conductor = conductor
        self._speaker = speaker
        self._beyond = beyond

    async def ask(self, question: Question[M]) -> Answer[M]:
        """Return the answer in the log, or raise the error in the log. After the end of the log, ask the real
        model."""
        what = f"an answer of a model to {question.contract}"
        called = self._conductor.recording.model(self._speaker, question.contract)
        if called is not None:
            try:
                return _answered(called, question)
            except Unreadable as error:
                what = f"{what} that can be read (that of the log cannot, perhaps it was redacted: {error.problem})"
        await self._conductor.until_live(self._speaker, what)
        return await self._beyond.ask(question)

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Return the turn in the log, or raise the error in the log. After the end of the log, ask the real
        model."""
        called = self._conductor.recording.model(self._speaker, conversation.contract)
        if called is None:
            await self._conductor.until_live(self._speaker, "a turn of a model")
            return await self._beyond.converse(conversation, on_text)
        if called.turn is None:
            raise _error(called)
        return Spoken(turn=called.turn, raw=called.answer, **spent_by(called))


def _answered(called: ModelCalled, question: Question[M]) -> Answer[M]:
    if called.error is not None:
        raise _error(called)
    value = read_answer(called.answer, question.schema, body_field=question.body_field)
    return Answer(value=value, text=called.answer, **spent_by(called))


def _error(called: ModelCalled) -> ModelError | BudgetExhausted:
    message = called.error or ""
    failure = called.failure
    match failure.nature if failure is not None else "other":
        case "unreachable":
            return ModelUnreachable(message)
        case "refused":
            return ModelRefused(message, status=failure.status if failure is not None else 0)
        case "overflow":
            return ContextOverflow(message, status=failure.status if failure is not None else 0)
        case "invalid":
            return ModelAnswerInvalid(message, answer=called.answer)
        case "budget":
            return BudgetExhausted(message, budget=failure.budget if failure is not None else "calls")
        case _:
            return ModelError(message)


class RecordedEyes:
    """The observations that one role made, which are read from the log. Implements observed_sources.Eyes."""

    def __init__(self, conductor: Conductor, speaker: Speaker, port: Port) -> None:
        self._conductor = conductor
        self._speaker = speaker
        self._port = port
        self._beyond = LiveEyes(port)

    async def look(self, source: Source, question: str, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        speaker = self._speaker
        seen = self._conductor.recording.sight(speaker, source)
        if seen is None:
            await self._conductor.until_live(speaker, f"a look at {source.value}: {question[:80]}")
            return await self._beyond.look(source, question, kind, look)
        self._port.publish(seen.model_copy(update={"question": question}))
        if seen.error is not None:
            raise MemoryStoreError(seen.error)
        return read_back(kind, seen.answer)

    async def between(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        """Return what was observed before the next turn in the log. Return an empty tuple if nothing was
        observed."""
        speaker, conductor = self._speaker, self._conductor
        if not conductor.live:
            first = conductor.recording.looks_first(speaker, source, CONTRACT)
            if first:
                return await self.look(source, "", kind, look)
            if first is False:
                return read_back(kind, ())
            await conductor.until_live(speaker, f"a turn, or {source.value} before it")
        return await self._beyond.between(source, kind, look)

    async def last(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        """Return what was observed after the turn; empty if the log goes on with a turn or the attempt's result."""
        conductor = self._conductor
        goes_on = not conductor.live and conductor.has_result(self._speaker)
        if goes_on and not conductor.recording.looks_first(self._speaker, source, CONTRACT):
            return read_back(kind, ())
        return await self.between(source, kind, look)


def read_back(kind: type[T], answer: object) -> T:
    """Rebuild a value that `observed_sources.plain` has converted to JSON values."""
    return TypeAdapter(kind).validate_python(answer)


class RecordedIds:
    """Returns the identifiers in the log in their order, then new ones. Implements Ids."""

    def __init__(self, recorded: deque[str], beyond: Ids) -> None:
        self._recorded = recorded
        self._beyond = beyond

    def new(self) -> str:
        """Return the next identifier."""
        return self._recorded.popleft() if self._recorded else self._beyond.new()


class RecordedRemember:
    """The writing interface of memory in a replayed or resumed task. If `beyond` is None, as in a replay, nothing
    is stored.

    When the task goes live, everything that it has written before is written again under the same ids. Memory
    ignores entries that it already has, but a crash may have lost some of them.
    """

    def __init__(self, conductor: Conductor, ids: Ids, beyond: Remember | None) -> None:
        self._conductor = conductor
        self._ids = ids
        self._beyond = beyond
        self._early: list[Megram] = []

    def write(self, megram: Megram) -> None:
        if self._beyond is None:
            return
        if self._conductor.live:
            self._beyond.write(megram)
        else:
            self._early.append(megram)

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Return the id in the log if the log contains this feedback. Otherwise store the feedback and return its
        new id."""
        recorded = self._conductor.recording.opposing_ids
        if recorded:
            return recorded.popleft()
        return self._ids.new() if self._beyond is None else self._beyond.record_negative_feedback(rule_id, content)

    def go_live(self) -> None:
        """Store the entries that the task wrote before it went live."""
        early, self._early = self._early, []
        if self._beyond is not None:
            for megram in early:
                self._beyond.write(megram)

    async def flush(self) -> None:
        if self._beyond is not None:
            await self._beyond.flush()

    async def close(self) -> None:
        """Do nothing, because the owner of the real memory closes that memory."""


class ReplayIds:
    """Generates identifiers for messages that are never stored. Implements Ids."""

    def __init__(self) -> None:
        self._count = 0

    def new(self) -> str:
        """Return `replay-1`, `replay-2`, …"""
        self._count += 1
        return f"replay-{self._count}"


class RecordedTools:
    """All tools of a task, as its roles saw them when the log was written. Implements ports.tools.Tools.

    `specs` come from the log. `beyond` are the real tools, or None in a replay.
    """

    def __init__(self, conductor: Conductor, specs: tuple[ToolSpec, ...] | None, beyond: Tools | None) -> None:
        self._conductor = conductor
        self._specs = specs
        self._beyond = beyond

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the descriptions of tools in the log. If the log contains none, return those of the real tools."""
        if self._specs is not None:
            return self._specs
        return self._beyond.specs if self._beyond is not None else ()

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> RecordedToolbox:
        offered = tuple(spec for spec in self.specs if spec.name not in must_not.tools)
        beyond = self._beyond

        def real() -> Toolbox | None:
            return None if beyond is None else beyond.toolbox(subtask_id, must_not, cautions)

        return RecordedToolbox(self._conductor, subtask_id, offered, real)

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        return (name,) if self._beyond is None else self._beyond.identities(name, arguments)


@dataclass(slots=True)
class RecordedToolbox:
    """The tools of one subtask, which return the results in the log. Implements ports.tools.Toolbox."""

    conductor: Conductor
    subtask_id: str
    specs: tuple[ToolSpec, ...]
    make: Callable[[], Toolbox | None]
    _real: Toolbox | None = None

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """Return the result in the log. If the log contains no result of this call, make the call with the real
        tools."""
        # A call that was started and has not ended is passed to the real toolbox, which does not simply repeat it.
        recorded = self.conductor.recording.calls.get(ticket.act) if ticket is not None else None
        if recorded is not None and ticket is not None:
            for started in recorded.started:
                ticket.announce(Departure(started.input, started.effects, started.digest))
            if recorded.ended is not None:
                return recorded.ended
        await self.conductor.until_live((Role.EXECUTOR, self.subtask_id), f"the end of a call of {name}")
        if self._real is None:
            self._real = self.make()
        if self._real is None:
            raise RuntimeError("a replay went live without tools")
        return await self._real.call(name, arguments, ticket)
