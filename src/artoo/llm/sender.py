"""Send prompts to one model until it answers, and detect its wire and window, with vendor hosts and probe limits.

It handles refused forms, retries and the budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

from artoo.contracts.errors import ContextOverflow, ModelRefused, ModelUnreachable
from artoo.contracts.events import Usage
from artoo.llm.asking import NOTHING_USED, Asking
from artoo.llm.budget import Demand
from artoo.llm.completion import Completion, error_code, error_of, kind_of, status_of
from artoo.llm.dialect import (
    FEATURES,
    Dialect,
    DialectMemory,
    may_object,
    names_any,
    refused_with,
    suspects,
)
from artoo.llm.prompt import PICTURE_TOKENS, Prompt, estimated_tokens, halved, most_tokens, texts_of
from artoo.llm.request import WIRES, request_for
from artoo.llm.retry import Retrier, RetryPolicy, is_transient
from artoo.llm.streamed import objects
from artoo.llm.transport import Json, OnEvent, Transport, TransportReply
from artoo.llm.wires.how import ServerTraits, Wire
from artoo.ports.clock import Clock
from artoo.ports.model import Tier

# Builds the prompt for a dialect. The prompt uses native function calling or the text dialect.
Made = Callable[[Dialect], Prompt]

_IDENTIFY_SECONDS = 5.0
_MOST_IDENTIFICATIONS = 2
_LONGEST_ADDRESS = 200
# Number of tokens by which the limit is raised for a model that thinks before it answers, because thoughts count
# for the limit.
_ROOM_FOR_THOUGHTS = 8_192
# If a refused prompt has more estimated tokens than this, half of it is sent to test whether it was too long.
_PROBED_TOKENS = 1_024
_PROBE_ANSWER = 16
_NO_SUCH_PATH = (404, 405, 501)
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_input_tokens")
# Error codes of vendors for a prompt that is too long. For all other servers, this is detected by sending half of
# the prompt.
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
# Hosts whose native wire is known from their address.
_HOSTS = {"api.openai.com": "responses", "api.anthropic.com": "messages"}


class _Request(NamedTuple):
    """One request as it will be sent, with the optional features that it uses and the maximum amounts that it can
    use."""

    wire: Wire
    body: dict[str, object]
    prompt: Prompt
    demand: Demand
    features: frozenset[str]


class Sender:
    """Sends all requests to one model. `wire`: the configured wire. With `auto`, it is chosen by the address and by
    the answers of the server."""

    def __init__(
        self,
        transport: Transport,
        model: str,
        clock: Clock,
        *,
        retry: RetryPolicy,
        memory: DialectMemory | None,
        random: Random,
        traits: ServerTraits,
        wire: str = "auto",
    ) -> None:
        self.transport = transport
        self.model = model
        host = urlsplit(transport.name).hostname or ""
        is_openai = host == "api.openai.com" or host.endswith(".openai.azure.com")
        self.traits = replace(traits, is_openai=is_openai)
        self._retrier = Retrier(retry, clock, random)
        self._memory = memory
        self._key = f"{transport.name} {model}"
        self._dialect = (memory.load(self._key) if memory is not None else None) or Dialect()
        self._by_address = _HOSTS.get(host, "chat")
        self._fixed = None if wire == "auto" else wire
        self._proven: frozenset[str] = frozenset()
        self._room_for_thoughts = 0
        self._identified = False
        self._failed_identifications = 0
        self._identifying = asyncio.Lock()

    @property
    def dialect(self) -> Dialect:
        """Return the dialect that is currently used for the server."""
        return self._dialect

    @property
    def native(self) -> bool:
        """Return whether native function calling is used. It is not for small models, which succeed more often with
        programs in fenced blocks."""
        return self._fixed != "text" and "tools" not in self._dialect.without and not self.traits.is_small

    async def complete(self, asking: Asking, made: Made, max_tokens: int) -> Completion:
        """Ask for one answer. Raises ModelUnreachable, ModelRefused, ContextOverflow or BudgetExhausted."""
        reply = await self._send(asking, made, max_tokens + self._room_for_thoughts)
        completion = reply.completion or self._failed(reply, asking, made(self._dialect))
        asking.model = completion.model or self.model
        asking.small = self.traits.is_small
        if completion.thought:
            self._room_for_thoughts = _ROOM_FOR_THOUGHTS
        if completion.declined:
            raise ModelRefused(
                f"{asking.model} declined to answer ({asking.contract}): {completion.declined[:300]}; "
                "rephrase the request or use another model",
                status=200,
            )
        return completion

    async def give_up(self, feature: str) -> None:
        """Stop using a feature which the server accepts but, as its answers show, does not implement."""
        await self._adopt(self._dialect.giving_up(feature))

    async def identify(self) -> None:
        """Ask the server once for its type and for the properties of its model. If there is no answer, nothing is
        known about them."""
        async with self._identifying:
            if self._identified:
                return
            try:
                reply = await self.transport.models(timeout=_IDENTIFY_SECONDS)
            except ModelUnreachable:
                # The question itself will report the problem, with retries. A server that hangs is asked only a
                # limited number of times.
                self._failed_identifications += 1
                self._identified = self._failed_identifications >= _MOST_IDENTIFICATIONS
                return
            llama = any(entry.get("owned_by") == "llamacpp" for entry in listed_models(reply))
            size, window = _size_and_window(reply, self.model)
            self.traits = replace(self.traits, is_llama=llama, model_bytes=size, window=window)
            self._identified = True

    async def _send(self, asking: Asking, made: Made, max_tokens: int) -> TransportReply:
        """Send a request. If the server refuses the form, leave out one optional feature after another."""
        dialect = self._dialect
        reply, request = await self._try(asking, made, max_tokens, dialect)
        if reply.completion is not None:
            self._proven |= request.features
            return reply
        first, used = reply, request.features - dialect.without
        if (status_of(reply) == 413 or error_code(reply) in _TOO_LONG) and not request.prompt.images:
            raise self._too_long(first)
        if not may_object(reply):
            return reply
        # If the refusal names no feature, the prompt may be too long. This is tested before features are left out.
        if status_of(first) not in _NO_SUCH_PATH and not names_any(reply, used):
            shorter = dialect.giving_up("long_answer")
            if "long_answer" in used and self._is_long(made(dialect)):
                reply, request = await self._try(asking, made, max_tokens, shorter)
                if reply.completion is not None:
                    await self._adopt(shorter)
                    return reply
            if await self._half_fits(asking, made, dialect):
                raise self._too_long(first)
        while left := suspects(reply, request.features - dialect.without, self._proven):
            dialect = dialect.giving_up(left[0])
            reply, request = await self._try(asking, made, max_tokens, dialect)
            if reply.completion is not None:
                learnt = refused_with(left[0], dialect.without - self._dialect.without)
                await self._adopt(Dialect(self._dialect.wire, learnt))
                return reply
            if not may_object(reply):
                return reply
        if status_of(first) not in _NO_SUCH_PATH and await self._half_fits(asking, made, dialect):
            raise self._too_long(first)
        return await self._on_other_wire(asking, made, max_tokens, first) or first

    @staticmethod
    def _is_long(prompt: Prompt) -> bool:
        return estimated_tokens(*texts_of(prompt)) >= _PROBED_TOKENS

    async def _half_fits(self, asking: Asking, made: Made, dialect: Dialect) -> bool:
        """Check whether the server answers half of a prompt that it has refused. If so, the whole prompt was too
        long."""
        prompt = made(dialect)
        if not self._is_long(prompt):
            return False
        live, asking.live = asking.live, None
        reply, _ = await self._try(asking, lambda _: halved(prompt), _PROBE_ANSWER, dialect)
        asking.live = live
        return reply.completion is not None

    async def _on_other_wire(
        self, asking: Asking, made: Made, max_tokens: int, first: TransportReply
    ) -> TransportReply | None:
        """Try the other wires, because the path of the usual wire does not exist on this server."""
        if self._fixed is not None or self._dialect.wire is not None or status_of(first) not in _NO_SUCH_PATH:
            return None
        for wire in WIRES:
            if wire != self._by_address:
                reply, _ = await self._try(asking, made, max_tokens, Dialect(wire))
                if reply.completion is not None:
                    await self._adopt(Dialect(wire))
                    return reply
        return None

    async def _try(
        self, asking: Asking, made: Made, max_tokens: int, dialect: Dialect
    ) -> tuple[TransportReply, _Request]:
        request = self._request(asking, made(dialect), max_tokens, dialect)
        asking.native = bool(request.prompt.tools)
        reply = await self._retrier.send(lambda timeout: self._post(asking, request, timeout))
        return reply, request

    def _request(self, asking: Asking, prompt: Prompt, max_tokens: int, dialect: Dialect) -> _Request:
        name = asking.wire = self._wire(dialect)
        prompt, how = request_for(prompt, self.model, max_tokens, name, dialect, self.traits, stream=asking.streams)
        asking.form = how.form
        wire = WIRES[name]
        body = wire.body_of(prompt, how)
        described = next(filter(None, map(body.get, ("tools", "response_format", "text", "output_config"))), None)
        demand = Demand(most_tokens(prompt, described), max_tokens, self.model)
        return _Request(wire, body, prompt, demand, frozenset(how.used & FEATURES.keys()))

    def _wire(self, dialect: Dialect) -> str:
        chosen = self._fixed if self._fixed in WIRES else dialect.wire
        return chosen if chosen is not None and chosen in WIRES else self._by_address

    async def _post(self, asking: Asking, request: _Request, timeout: float) -> TransportReply:
        """Send one request. Its budget is reserved before, and settled by its usage afterwards.

        A request without an answer may have been charged, so its prompt is counted by an estimate.
        """
        reservation = await asking.meter.reserve(request.demand)
        asking.requests += 1
        reply: TransportReply | None = None
        lost = True
        try:
            path, hears = request.wire.path, _hearing(asking, request)
            came = await self.transport.post(request.body, timeout=timeout, path=path, on_event=hears)
            reply = request.wire.read(came)
            return reply
        except ModelUnreachable as error:
            lost = error.sent
            raise
        finally:
            unheard = Usage(prompt_tokens=_estimate(request), estimated=True) if lost else None
            asking.settle(reservation, unheard if reply is None else _used(request, reply))

    async def _adopt(self, dialect: Dialect) -> None:
        """Store the features that the server has refused, together with those that parallel questions have found
        meanwhile."""
        self._dialect = Dialect(dialect.wire or self._dialect.wire, self._dialect.without | dialect.without)
        if self._memory is not None:
            await self._memory.save(self._key, self._dialect)

    def _too_long(self, reply: TransportReply) -> ContextOverflow:
        return ContextOverflow(
            f"the prompt does not fit the context of {self.model} at {self.transport.name} (HTTP "
            f"{status_of(reply)}: {error_of(reply)}); give the server a larger context, or use a model with one",
            status=status_of(reply),
        )

    def _failed(self, reply: TransportReply, asking: Asking, prompt: Prompt) -> NoReturn:
        """Raise the error that corresponds to a reply without a completion."""
        status = status_of(reply)
        where, said, later = self.transport.name, error_of(reply), self._retrier.comes_back(reply)
        if status == 200 or (is_transient(reply) and status >= 500):
            came = f"HTTP {status}" if status != 200 else f"no chat completion, but {kind_of(reply)}"
            raise ModelUnreachable(
                f"{where} did not answer ({came}): {said}{later}; check the server and its log", transient=True
            )
        hint = later or _hint(reply, asking.tier, prompt.images)
        raise ModelRefused(f"{where} refused the request (HTTP {status}): {said}{hint}", status=status)


def _used(request: _Request, reply: TransportReply) -> Usage | None:
    """Return the usage of an answer, with estimates for counts that the server left out. Return None for a refusal,
    which costs nothing.
    """
    if status_of(reply) != 200:
        return None
    completion = reply.completion
    if completion is None:
        return Usage(prompt_tokens=_estimate(request), estimated=True)
    counted = completion.usage or NOTHING_USED
    if counted.prompt_tokens and counted.completion_tokens:
        return counted
    written = estimated_tokens(completion.text, completion.thoughts)
    if counted.prompt_tokens and not written:
        return counted
    return Usage(
        prompt_tokens=counted.prompt_tokens or _estimate(request),
        completion_tokens=counted.completion_tokens or written,
        cached_tokens=counted.cached_tokens,
        estimated=True,
    )


def _estimate(request: _Request) -> int:
    return estimated_tokens(*texts_of(request.prompt)) + request.prompt.images * PICTURE_TOKENS


def _hearing(asking: Asking, request: _Request) -> OnEvent | None:
    """Return the listener for the events of a reply. Return None for the text dialect, because users are not shown
    its steps."""
    live = asking.live
    if live is None or not request.prompt.tools:
        return None
    live.restart()
    return lambda event: live.add(request.wire.words(event))


def listed_models(reply: TransportReply) -> list[dict[str, Json]]:
    """Return the names of the models that a server lists."""
    return objects(reply.body.get("data")) if reply.status == 200 and isinstance(reply.body, dict) else []


def _size_and_window(reply: TransportReply, model: str) -> tuple[int | None, int | None]:
    """Return the size of a model's weights in bytes, and the tokens of its context, as far as its server lists
    them.

    llama.cpp lists both in `meta`. vLLM, OpenRouter and others have a field for the context. If a server has only
    one model, its name need not match.
    """
    listed = listed_models(reply)
    found = listed if len(listed) == 1 else [entry for entry in listed if entry.get("id") == model]
    entry = found[0] if found else {}
    meta = entry.get("meta")
    own = meta if isinstance(meta, dict) else {}
    size = own.get("size")
    windows = (own.get("n_ctx"), *(entry.get(name) for name in _WINDOWS))
    window = next((value for value in windows if isinstance(value, int) and value > 0), None)
    return (size if isinstance(size, int) else None), window


def _hint(reply: TransportReply, tier: Tier, images: int) -> str:
    status, elsewhere = status_of(reply), reply.headers.get("location", "")
    if elsewhere and 300 <= status < 400:
        return (
            f"; it sends on to {elsewhere[:_LONGEST_ADDRESS]}, where no key is taken unasked: "
            "if that server is meant, set the base URL to it"
        )
    if images and status in (400, 404, 413, 415, 422):
        return (
            f"; it was shown {images} image(s): if the model takes none, set "
            f"models.{tier.value}.images to false, if it takes only smaller ones, make them smaller"
        )
    match status:
        case 401 | 403:
            return "; check the API key (BRAIN_API_KEY, TOOL_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY)"
        case 404:
            return "; check the model's name, and that the base URL ends as the server wants it (mostly /v1)"
        case 429:
            return "; wait, lower the parallelism, or raise the account's limits"
        case _:
            return ""
