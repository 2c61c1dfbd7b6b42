"""One model of one server as roles use it, which asks, parses, and repairs an unreadable answer once.

Reference: SPEC section 9.

One question or turn may need several requests, because a server refuses a form, because of a retry, or for one
repair. Each step has a module: `request` builds requests, `retry` sends them, `completion` and `reading` parse the
answers, and `dialect` stores which features the server accepts.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from pydantic import BaseModel

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid, ModelError
from artoo.contracts.events import Spent
from artoo.llm.asking import Asking
from artoo.llm.budget import Budget
from artoo.llm.catalogue import Listed, listed
from artoo.llm.completion import Completion
from artoo.llm.dialect import Dialect, DialectMemory
from artoo.llm.prompt import Prompt, native_prompt, prompt_of, repaired
from artoo.llm.retry import RetryPolicy
from artoo.llm.sender import Made, Sender
from artoo.llm.text.live_text import LiveText
from artoo.llm.text.reading import Unreadable, read_answer
from artoo.llm.text.turns import read_turn, writes_steps
from artoo.llm.transport import Transport
from artoo.llm.wires.how import Form, Reasoning, ServerTraits
from artoo.llm.wires.text import text_prompt
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier

T = TypeVar("T", bound=BaseModel)
Read = TypeVar("Read")

# Number of characters at the end of an interrupted answer that are examined. If they compress very well, the model
# has repeated itself in a loop.
_TAIL = 320


class EndpointModel:
    """One model of one server. All tasks share the object. It may be asked any number of questions at the same
    time.

    `memory` stores between runs which features the server accepts. `window`: the number of tokens of the model's
    context, as the operator configured it. `images`: true if the operator has configured that the model accepts
    images. `wire`: `chat`, `responses`, `messages`, `text`, or `auto`. `reasoning`: how much the model shall think,
    as configured.
    """

    def __init__(
        self,
        transport: Transport,
        model: str,
        clock: Clock,
        *,
        retry: RetryPolicy | None = None,
        memory: DialectMemory | None = None,
        random: Random | None = None,
        window: int | None = None,
        images: bool = False,
        wire: str = "auto",
        reasoning: Reasoning | None = None,
    ) -> None:
        self._clock = clock
        self._window = window
        self._images = images
        self._listed: Listed | None = None
        self._sender = Sender(
            transport,
            model,
            clock,
            retry=retry or RetryPolicy(),
            memory=memory,
            random=random or Random(),
            traits=ServerTraits(reasoning=reasoning),
            wire=wire,
        )

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """Ask a question, as `artoo.ports.model.Model` describes. `meter` is asked before each request, including
        retries and the repair.
        """
        asking = self._asking(question, meter)
        if question.body_field is not None:
            await self._sender.identify()
        prompt = prompt_of(question)

        async def read(completion: Completion) -> T:
            cut = completion.finish == "length"
            return read_answer(completion.text, question.schema, body_field=question.body_field, cut=cut)

        value, text = await self._valid(asking, lambda _: prompt, read, question.max_tokens)
        return Answer(value=value, text=text, **asking.spent(self._clock.monotonic()))

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        """Take a turn, as `artoo.ports.model.Converses` describes. `meter` has the same meaning as in `ask`."""
        asking = self._asking(conversation, meter)
        asking.live, asking.streams = (LiveText(on_text) if on_text is not None else None), True
        await self._sender.identify()
        native = self._sender.native

        def made(dialect: Dialect) -> Prompt:
            tools = native and "tools" not in dialect.without
            return native_prompt(conversation) if tools else text_prompt(conversation)

        async def read(completion: Completion) -> ModelTurn:
            nonlocal native
            if asking.native and writes_steps(completion, conversation):
                await self._sender.give_up("tools")
                native = asking.native = False
            return read_turn(completion, conversation, native=asking.native, small=asking.small)

        turn, raw = await self._valid(asking, made, read, conversation.max_tokens)
        if asking.live is not None:
            asking.live.end(turn.text)
        return Spoken(turn=turn, raw=raw, native=asking.native, **asking.spent(self._clock.monotonic()))

    async def known(self, tier: Tier | None = None) -> Known:
        """Return what is known about the model before it is asked. It is the same for every tier. A server is asked
        only once which model it serves.
        """
        sender = self._sender
        await sender.identify()
        known = Known(sender.traits.is_small, images=self._images, native=sender.native)
        window = self._window or sender.traits.window
        if window is None:
            # loaded only once, because a thread in every task would delay the first call of the task
            if self._listed is None:
                self._listed = await asyncio.to_thread(listed, sender.transport.name, sender.model)
            window = self._listed.window
        return known if window is None else replace(known, window=window)

    async def close(self) -> None:
        """Close the transport. Idempotent."""
        await self._sender.transport.close()

    def _asking(self, asked: Question[T] | Conversation, meter: Budget | None) -> Asking:
        started = self._clock.monotonic()
        return Asking(asked.contract, meter or Budget(), asked.tier, self._sender.model, started)

    async def _valid(
        self, asking: Asking, made: Made, read: Callable[[Completion], Awaitable[Read]], max_tokens: int
    ) -> tuple[Read, str]:
        """Return the parsed answer and its text. If the answer cannot be parsed, ask for one repair of it. Errors
        contain the cost."""
        try:
            first = await self._sender.complete(asking, made, max_tokens)
            try:
                return await read(first), first.text
            except Unreadable as unreadable:
                problem = _with_length(unreadable.problem, first)
            # Some servers accept a schema and ignore it. If so, the model has not seen the schema yet, and the
            # repair must contain it.
            stated = asking.form in (Form.JSON_SCHEMA, Form.FORCED_TOOL)
            room = self._room_after(asking, first, max_tokens)
            second = await self._sender.complete(
                asking, lambda dialect: repaired(made(dialect), first.text, problem, stated=stated), room
            )
            try:
                value, asking.repaired = await read(second), True
                return value, second.text
            except Unreadable as unreadable:
                raise self._invalid(asking, second, unreadable) from unreadable
        except (ModelError, BudgetExhausted) as error:
            error.spent = Spent(**asking.spent(self._clock.monotonic()))
            raise

    def _room_after(self, asking: Asking, bad: Completion, max_tokens: int) -> int:
        """Return the token limit for a repair. Raises ModelAnswerInvalid if the model repeats itself in a loop."""
        if bad.finish != "length":
            return max_tokens
        if len(bad.text) > _TAIL and len(zlib.compress(bad.text[-_TAIL:].encode())) < _TAIL // 8:
            raise ModelAnswerInvalid(
                f"{self._where} gave no valid {asking.contract}: it said the same few "
                "characters over and over until it was cut off. Try a stronger model",
                answer=bad.text,
            )
        # the answer was incomplete because of this limit, and the repair would be incomplete too
        return max_tokens * 2

    def _invalid(self, asking: Asking, bad: Completion, unreadable: Unreadable) -> ModelAnswerInvalid:
        return ModelAnswerInvalid(
            f"{self._where} gave no valid {asking.contract}, "
            f"also after being told what was wrong: {_with_length(unreadable.problem, bad)}. "
            "Try a stronger model, or a server that supports JSON schemas",
            answer=bad.text,
        )

    @property
    def _where(self) -> str:
        return f"{self._sender.model} at {self._sender.transport.name}"


def _with_length(problem: str, completion: Completion) -> str:
    if completion.finish != "length":
        return problem
    return f"{problem} (the answer reached its token limit and was cut off; be shorter)"
