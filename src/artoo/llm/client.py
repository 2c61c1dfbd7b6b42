"""A language model behind a server, as roles see it (SPEC section 9).

One question or turn may take several requests: forms that the server refuses, retries, one repair. Each step has
its module: `request` writes, `retry` sends, `completion` and `reading` read, `dialect` remembers what was accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.errors import (
    BudgetExhausted,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnreachable,
    Spent,
)
from artoo.contracts.events import Usage
from artoo.llm.budget import Demand, Meter, Unmetered
from artoo.llm.completion import Completion, completion_of, error_of, kind_of, status_of
from artoo.llm.dialect import Dialect, DialectMemory, NoDialectMemory, Wire
from artoo.llm.live_text import LiveText
from artoo.llm.prompt import (
    PICTURE_TOKENS,
    Prompt,
    estimated_tokens,
    most_tokens,
    native_prompt,
    prompt_of,
    repaired,
    texts_of,
)
from artoo.llm.reading import Unreadable, read_answer
from artoo.llm.request import ServerTraits, body_for, wire_for
from artoo.llm.retry import Retrier, RetryPolicy, is_transient
from artoo.llm.runaway import runs_away
from artoo.llm.transport import OnEvent, Transport, TransportReply
from artoo.llm.turns import read_turn
from artoo.llm.wires import chat
from artoo.llm.wires.text import text_prompt
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier

T = TypeVar("T", bound=BaseModel)

_IDENTIFY_SECONDS = 5.0
_MOST_IDENTIFICATIONS = 2
_MOST_DIALECTS = 8
_LONGEST_ADDRESS = 200
_ROOM_FOR_THOUGHTS = 8_192
"""Tokens added to the limit for a model that was seen to think first: its thoughts count against the limit."""


_NOTHING_USED = Usage()


@dataclass(slots=True)
class _Asking:
    """One question or turn under way: what it has cost so far, and how it is being asked. `live`: who hears its
    words as they come; only turns are streamed."""

    contract: str
    meter: Meter
    tier: Tier
    live: LiveText | None = None
    streams: bool = False
    wire: Wire = Wire.JSON_SCHEMA
    requests: int = 0
    usage: Usage = _NOTHING_USED
    model: str = ""
    completion: Completion | None = None
    """What the last reply holds, read once: for the account and for the answer."""

    def add(self, usage: Usage) -> None:
        if self.requests == 1:
            self.usage = usage
            return
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + usage.completion_tokens,
            cached_tokens=self.usage.cached_tokens + usage.cached_tokens,
            estimated=self.usage.estimated or usage.estimated,
        )

    def spent(self) -> Spent:
        usage = self.usage
        return Spent(
            requests=self.requests,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            model=self.model,
            wire=self.wire.value,
        )


class _Request(NamedTuple):
    """One request as it will be sent, and the most that it can use."""

    body: dict[str, object]
    prompt: Prompt
    demand: Demand


class EndpointModel:
    """One model of one server. Shared by all tasks; safe for any number of questions at once.

    `memory` keeps what was found out about the server between runs; `compact` see ServerTraits. `window`: tokens of
    the model's context as the operator says; a server that tells a smaller one is believed. `images`: the operator
    says that it takes them.
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
        compact: bool = False,
        window: int | None = None,
        images: bool = False,
    ) -> None:
        self._transport = transport
        self._model = model
        self._clock = clock
        self._retrier = Retrier(retry or RetryPolicy(), clock, random or Random())
        self._memory = memory or NoDialectMemory()
        self._key = f"{transport.name} {model}"
        self._dialect = self._memory.load(self._key) or Dialect()
        host = urlsplit(transport.name).hostname or ""
        is_openai = host == "api.openai.com" or host.endswith(".openai.azure.com")
        self._traits = ServerTraits(is_openai=is_openai, compact=compact)
        self._window = window
        self._images = images
        self._room_for_thoughts = 0
        self._identified = False
        self._failed_identifications = 0
        self._identifying = asyncio.Lock()

    async def ask(self, question: Question[T], *, meter: Meter | None = None) -> Answer[T]:
        """See `artoo.ports.model.Model`. `meter` is asked before each request: retries and the repair too."""
        started = self._clock.monotonic()
        asking = _Asking(question.contract, meter or Unmetered(), question.tier, model=self._model)
        if question.body_field is not None or self._traits.compact:
            await self._identify()
        try:
            value, text, repaired = await self._answer(asking, question)
        except (ModelError, BudgetExhausted) as error:
            error.spent = asking.spent()
            raise
        return Answer(
            value=value,
            text=text,
            model=asking.model,
            usage=asking.usage,
            duration_ms=round((self._clock.monotonic() - started) * 1_000),
            wire=asking.wire.value,
            requests=asking.requests,
            repaired=repaired,
            small=self._traits.is_small,
        )

    async def known(self, tier: Tier | None = None) -> Known:
        """What is known before it is asked, the same for every tier; a server is asked once which model it is."""
        await self._identify()
        windows = [each for each in (self._window, self._traits.window) if each is not None]
        small, images, native = self._traits.is_small, self._images, self._native
        return Known(small, min(windows), images, native) if windows else Known(small, images=images, native=native)

    async def close(self) -> None:
        """Closes the transport. Idempotent."""
        await self._transport.close()

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Meter | None = None
    ) -> Spoken:
        """See `artoo.ports.model.Converses`; `meter` as in `ask`."""
        started = self._clock.monotonic()
        live = LiveText(on_text) if on_text is not None else None
        asking = _Asking(
            conversation.contract, meter or Unmetered(), conversation.tier, live, streams=True, model=self._model
        )
        await self._identify()
        try:
            turn, raw, repaired = await self._turn(asking, conversation)
        except (ModelError, BudgetExhausted) as error:
            error.spent = asking.spent()
            raise
        if live is not None:
            live.end(turn.text)
        native = self._native
        return Spoken(
            turn=turn,
            model=asking.model,
            usage=asking.usage,
            duration_ms=round((self._clock.monotonic() - started) * 1_000),
            wire="chat" if native else "text",
            requests=asking.requests,
            repaired=repaired,
            small=self._traits.is_small,
            native=native,
            raw=raw,
        )

    @property
    def _native(self) -> bool:
        """Whether conversations are asked with function calling; small models write programs better in fences."""
        return self._dialect.native and not self._traits.is_small

    async def _turn(self, asking: _Asking, conversation: Conversation) -> tuple[ModelTurn, str, bool]:
        """The next turn, its text as it came, and whether it was repaired."""

        def prompt() -> Prompt:
            return native_prompt(conversation) if self._native else text_prompt(conversation)

        def repair() -> Prompt:
            return repaired(prompt(), first.text, problem)

        first = await self._complete(asking, prompt, conversation.max_tokens)
        try:
            return self._read_turn(first, conversation), first.text, False
        except Unreadable as unreadable:
            problem = _with_length(unreadable.problem, first)
        room = self._room_after(asking, first, conversation.max_tokens)
        second = await self._complete(asking, repair, room)
        try:
            return self._read_turn(second, conversation), second.text, True
        except Unreadable as unreadable:
            raise self._invalid(asking, second, unreadable) from unreadable

    def _read_turn(self, completion: Completion, conversation: Conversation) -> ModelTurn:
        return read_turn(completion, conversation, native=self._native, small=self._traits.is_small)

    async def _answer(self, asking: _Asking, question: Question[T]) -> tuple[T, str, bool]:
        prompt = prompt_of(question)
        first = await self._complete(asking, lambda: prompt, question.max_tokens)
        try:
            return _read(first, question), first.text, False
        except Unreadable as unreadable:
            problem = _with_length(unreadable.problem, first)

        def repair() -> Prompt:
            # Some servers accept a schema and ignore it; then the model has not seen it yet.
            shown = wire_for(prompt, self._dialect, self._traits) is Wire.JSON_SCHEMA
            return repaired(prompt, first.text, problem, stated=shown)

        second = await self._complete(asking, repair, self._room_after(asking, first, question.max_tokens))
        try:
            return _read(second, question), second.text, True
        except Unreadable as unreadable:
            raise self._invalid(asking, second, unreadable) from unreadable

    def _room_after(self, asking: _Asking, bad: Completion, max_tokens: int) -> int:
        """Tokens for the repair of an answer. Raises ModelAnswerInvalid when it would go round in circles again."""
        if bad.finish != "length":
            return max_tokens
        if runs_away(bad.text or bad.thoughts):
            raise ModelAnswerInvalid(
                f"{self._model} at {self._transport.name} gave no valid {asking.contract}: it said the same few "
                "characters over and over until it was cut off. Try a stronger model",
                answer=bad.text,
            )
        return max_tokens * 2  # cut off: the same room would cut it again

    def _invalid(self, asking: _Asking, bad: Completion, unreadable: Unreadable) -> ModelAnswerInvalid:
        return ModelAnswerInvalid(
            f"{self._model} at {self._transport.name} gave no valid {asking.contract}, "
            f"also after being told what was wrong: {_with_length(unreadable.problem, bad)}. "
            "Try a stronger model, or a server that supports JSON schemas",
            answer=bad.text,
        )

    async def _complete(self, asking: _Asking, prompt: Callable[[], Prompt], max_tokens: int) -> Completion:
        """One answer, in the server's dialect. Raises ModelUnreachable, ModelRefused, BudgetExhausted."""
        reply = await self._send(asking, prompt, max_tokens + self._room_for_thoughts)
        completion = asking.completion or self._failed(reply, asking, prompt())
        asking.model = completion.model or self._model
        if completion.thought:
            self._room_for_thoughts = _ROOM_FOR_THOUGHTS
        if completion.refusal:
            raise ModelRefused(
                f"{asking.model} declined to answer ({asking.contract}): {completion.refusal[:300]}; "
                "rephrase the request or use another model",
                status=200,
            )
        return completion

    async def _send(self, asking: _Asking, made: Callable[[], Prompt], max_tokens: int) -> TransportReply:
        """Sends, and sends again in a weaker form while the server objects to the form."""
        for attempt in range(1, _MOST_DIALECTS + 1):
            dialect, prompt = self._dialect, replace(made(), max_tokens=max_tokens)
            asking.wire = wire_for(prompt, dialect, self._traits)
            body = body_for(
                prompt,
                model=self._model,
                wire=asking.wire,
                dialect=dialect,
                traits=self._traits,
                stream=asking.streams,
            )
            most = most_tokens(prompt, body.get("tools") or body.get("response_format"))
            request = _Request(body, prompt, Demand(most, max_tokens, self._model))
            reply = await self._retrier.send(lambda timeout, request=request: self._post(asking, request, timeout))
            objects = asking.completion is None
            other = dialect.after(reply, asking.wire, tools=bool(prompt.tools)) if objects else None
            if other is None or attempt == _MOST_DIALECTS:
                return reply
            await self._adopt(dialect, other)
        raise AssertionError("unreachable: the last attempt returns")

    async def _post(self, asking: _Asking, request: _Request, timeout: float) -> TransportReply:
        """One request: reserved, sent, settled by what it used.

        What was sent and never answered may have been charged: its prompt counts, by estimate.
        """
        reservation = await asking.meter.reserve(request.demand)
        asking.requests += 1
        reply: TransportReply | None = None
        lost = True
        try:
            live = asking.live if request.prompt.tools else None
            if live is not None:
                live.restart()
            hears = _hearing(live) if live is not None else None
            came = await self._transport.post(request.body, timeout=timeout, path=chat.PATH, on_event=hears)
            reply = chat.whole(came)
            asking.completion = completion_of(reply) if status_of(reply) == 200 else None
            return reply
        except ModelUnreachable as error:
            lost = error.sent
            raise
        finally:
            if reply is not None:
                used = _used(request, reply, asking.completion)
            else:
                used = Usage(prompt_tokens=_estimate(request), estimated=True) if lost else None
            if used is None:
                asking.meter.release(reservation)
            else:
                asking.add(used)
                asking.meter.settle(reservation, used)

    async def _adopt(self, before: Dialect, other: Dialect) -> None:
        """Takes over what a refusal taught, unless a parallel call learnt it first."""
        if self._dialect == before:
            self._dialect = other
            await self._memory.save(self._key, other)
        elif self._dialect.without != other.without:
            missing = tuple(name for name in other.without if name not in self._dialect.without)
            self._dialect = replace(self._dialect, without=(*self._dialect.without, *missing))

    def _failed(self, reply: TransportReply, asking: _Asking, prompt: Prompt) -> NoReturn:
        """Raises what a reply without a completion means."""
        status = status_of(reply)
        where, said, later = self._transport.name, error_of(reply), self._retrier.comes_back(reply)
        if status == 200 or (is_transient(reply) and status >= 500):
            came = f"HTTP {status}" if status != 200 else f"no chat completion, but {kind_of(reply)}"
            raise ModelUnreachable(
                f"{where} did not answer ({came}): {said}{later}; check the server and its log", transient=True
            )
        hint = later or _hint(reply, said, asking.tier, prompt.images)
        raise ModelRefused(f"{where} refused the request (HTTP {status}): {said}{hint}", status=status)

    async def _identify(self) -> None:
        """Asks once which server this is; only llama.cpp matters, for its grammars. No answer means another."""
        if self._identified:
            return
        async with self._identifying:
            if self._identified:
                return
            try:
                reply = await self._transport.models(timeout=_IDENTIFY_SECONDS)
            except ModelUnreachable:
                # The question itself will say so, with its retries. A server that hangs here is not asked for ever.
                self._failed_identifications += 1
                self._identified = self._failed_identifications >= _MOST_IDENTIFICATIONS
                return
            self._traits = replace(
                self._traits,
                is_llama=_is_llama(reply),
                model_bytes=_meta(reply, self._model, "size"),
                window=_meta(reply, self._model, "n_ctx"),
            )
            self._identified = True


def _read(completion: Completion, question: Question[T]) -> T:
    return read_answer(
        completion.text,
        question.schema,
        body_field=question.body_field,
        cut=completion.finish == "length",
    )


def _with_length(problem: str, completion: Completion) -> str:
    if completion.finish != "length":
        return problem
    return f"{problem} (the answer reached its token limit and was cut off; be shorter)"


def _used(prompt: _Request, reply: TransportReply, completion: Completion | None) -> Usage | None:
    """What an answer used, by estimate as far as the server did not count; None: a refusal, which costs nothing."""
    if status_of(reply) != 200:
        return None
    if completion is None:
        return Usage(prompt_tokens=_estimate(prompt), estimated=True)
    counted = completion.usage or _NOTHING_USED
    if counted.prompt_tokens and counted.completion_tokens:
        return counted
    written = estimated_tokens(completion.text, completion.thoughts)
    if counted.prompt_tokens and not written:
        return counted
    return Usage(
        prompt_tokens=counted.prompt_tokens or _estimate(prompt),
        completion_tokens=counted.completion_tokens or written,
        cached_tokens=counted.cached_tokens,
        estimated=True,
    )


def _estimate(request: _Request) -> int:
    return estimated_tokens(*texts_of(request.prompt)) + request.prompt.images * PICTURE_TOKENS


def _hearing(live: LiveText) -> OnEvent:
    return lambda event: live.add(chat.words(event))


def _meta(reply: TransportReply, model: str, name: str) -> int | None:
    """llama.cpp says in `meta` how large the weights (`size`) and the context (`n_ctx`) of a model are: of the one
    that is asked, or of its only one, which it may call otherwise."""
    data = reply.body.get("data") if reply.status == 200 and isinstance(reply.body, dict) else None
    listed = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    asked = listed if len(listed) == 1 else [entry for entry in listed if entry.get("id") == model]
    meta = asked[0].get("meta") if asked else None
    value = meta.get(name) if isinstance(meta, dict) else None
    return value if isinstance(value, int) else None


def _is_llama(reply: TransportReply) -> bool:
    data = reply.body.get("data") if reply.status == 200 and isinstance(reply.body, dict) else None
    if not isinstance(data, list):
        return False
    return any(isinstance(entry, dict) and entry.get("owned_by") == "llamacpp" for entry in data)


def _hint(reply: TransportReply, said: str, tier: Tier, images: int) -> str:
    status, elsewhere = status_of(reply), reply.headers.get("location", "")
    if elsewhere and 300 <= status < 400:
        return (
            f"; it sends on to {elsewhere[:_LONGEST_ADDRESS]}, where no key is taken unasked: "
            "if that server is meant, set the base URL to it"
        )
    if "context" in said.lower() and status in (400, 413, 422):
        return "; give the server a larger context, or use a model with one"
    if images and status in (400, 404, 413, 415, 422):
        return (
            f"; it was shown {images} image(s): if the model takes none, set "
            f"models.{tier.value}.images to false, if it takes only smaller ones, make them smaller"
        )
    match status:
        case 401 | 403:
            return "; check the API key (BRAIN_API_KEY, TOOL_API_KEY or OPENAI_API_KEY)"
        case 404:
            return "; check the model's name, and that the base URL ends as the server wants it (mostly /v1)"
        case 429:
            return "; wait, lower the parallelism, or raise the account's limits"
        case _:
            return ""
