"""The three wires as their vendors' SDKs describe them: their types check requests and make streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import orjson
from aiohttp import web
from anthropic import types as messages
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types import responses
from openai.types.chat import ChatCompletionChunk, completion_create_params
from openai.types.responses import response_create_params
from pydantic import BaseModel, TypeAdapter

from artoo.llm import guard
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.llm.retry import RetryPolicy
from artoo.llm.wires.how import Reasoning
from artoo.testing import FakeClock

Event = dict[str, Any]
Call = tuple[str, str, str]
"""Id, name and arguments."""


def checked(adapter: TypeAdapter[Any], known: Iterable[str], body: Mapping[str, Any]) -> None:
    """Fails for a field that the SDK does not know, or a value of another type. Iterables are read to their end."""
    unknown = set(body) - set(known)
    assert not unknown, f"the SDK has no such fields: {unknown}"
    read_through(adapter.validate_python(body))


def read_through(value: object) -> None:
    """Pydantic checks the items of an Iterable when they are asked for."""
    if isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            read_through(each)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in cast("Iterable[object]", value):
            read_through(each)


def plain(event: BaseModel) -> Event:
    """An event as the vendor's server writes it."""
    return event.model_dump(mode="json", exclude_unset=True, by_alias=True)


@dataclass(frozen=True)
class Vendor:
    """One wire: how its requests are checked, and the events that say a text and calls, `length` when cut."""

    wire: str
    path: str
    streamed: TypeAdapter[Any]
    plain: TypeAdapter[Any]
    fields: frozenset[str]
    events: Callable[[str, Sequence[Call], bool], list[Event]]
    error: Event
    named: bool

    def check(self, body: Mapping[str, Any]) -> None:
        """Checks a request against the SDK's types."""
        checked(self.streamed if body.get("stream") else self.plain, self.fields, body)

    def stream(self, events: Sequence[Event], *, end: bool = True) -> bytes:
        """Server-sent events; named ones where the vendor names them."""
        lines = [
            (f"event: {event['type']}\n" if self.named else "") + f"data: {orjson.dumps(event).decode()}\n\n"
            for event in events
        ]
        return ("".join(lines) + ("data: [DONE]\n\n" if end and self.wire == "chat" else "")).encode()


def _halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _chat(text: str, calls: Sequence[Call], cut: bool) -> list[Event]:
    def chunk(delta: Event, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        made = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return plain(ChatCompletionChunk.model_validate(made))

    made = [chunk({"role": "assistant", "content": ""})]
    made += [chunk({"content": piece}) for piece in _halves(text) if piece]
    for index, (own, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        made.append(chunk({"tool_calls": [{"index": index, "id": own, "type": "function", "function": function}]}))
        for piece in _halves(arguments):
            made.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    made.append(chunk({}, "length" if cut else "tool_calls" if calls else "stop"))
    usage: Event = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    usage |= {"prompt_tokens_details": {"cached_tokens": 80}}
    last: Event = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": usage,
    }
    return [*made, plain(ChatCompletionChunk.model_validate(last))]


def _responses(text: str, calls: Sequence[Call], cut: bool) -> list[Event]:
    thought: Event = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    output: list[Event] = [thought]
    if text:
        part: Event = {"type": "output_text", "text": text, "annotations": []}
        output.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        )
    output += [
        {"type": "function_call", "id": f"fc_{own}", "call_id": own, "name": name, "arguments": arguments}
        for own, name, arguments in calls
    ]
    used = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    used |= {"input_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 0}}
    used |= {"output_tokens_details": {"reasoning_tokens": 0}}
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": output, "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "usage": used,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
    }  # fmt: skip
    where: Event = {"item_id": "msg_1", "output_index": 1, "content_index": 0, "logprobs": []}
    made: list[BaseModel] = []
    for number, piece in enumerate(_halves(text) if text else []):
        event: Event = {"type": "response.output_text.delta", "delta": piece, "sequence_number": number, **where}
        made.append(responses.ResponseTextDeltaEvent.model_validate(event))
    ended = responses.ResponseIncompleteEvent if cut else responses.ResponseCompletedEvent
    kind = "response.incomplete" if cut else "response.completed"
    made.append(ended.model_validate({"type": kind, "response": response, "sequence_number": 9}))
    return [plain(event) for event in made]


def _messages(text: str, calls: Sequence[Call], cut: bool) -> list[Event]:
    usage = {
        "input_tokens": 15,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 5,
        "output_tokens": 1,
    }
    message: Event = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage,
        "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip
    made: list[BaseModel] = [
        messages.RawMessageStartEvent.model_validate({"type": "message_start", "message": message})
    ]

    def block(index: int, begun: Event, *deltas: Event) -> None:
        start = {"type": "content_block_start", "index": index, "content_block": begun}
        made.append(messages.RawContentBlockStartEvent.model_validate(start))
        for delta in deltas:
            event = {"type": "content_block_delta", "index": index, "delta": delta}
            made.append(messages.RawContentBlockDeltaEvent.model_validate(event))
        made.append(messages.RawContentBlockStopEvent(type="content_block_stop", index=index))

    begun = {"type": "thinking", "thinking": "", "signature": ""}
    block(
        0, begun, {"type": "thinking_delta", "thinking": "Hm."}, {"type": "signature_delta", "signature": "sealed"}
    )
    if text:
        pieces = [{"type": "text_delta", "text": piece} for piece in _halves(text)]
        block(1, {"type": "text", "text": "", "citations": None}, *pieces)
    for at, (own, name, arguments) in enumerate(calls, 2):
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in _halves(arguments)]
        block(at, {"type": "tool_use", "id": own, "name": name, "input": {}, "caller": {"type": "direct"}}, *pieces)
    reason = "max_tokens" if cut else "tool_use" if calls else "end_turn"
    ending = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 10}}
    made.append(messages.RawMessageDeltaEvent.model_validate(ending))
    made.append(messages.RawMessageStopEvent(type="message_stop"))
    return [plain(event) for event in made]


def _all_fields(params: type) -> frozenset[str]:
    """Fields of a TypedDict and of those that it extends."""
    keys = (getattr(params, name) for name in ("__required_keys__", "__optional_keys__"))
    return frozenset(name for each in keys for name in cast("frozenset[str]", each))


CHAT = Vendor(
    "chat",
    "/chat/completions",
    TypeAdapter(completion_create_params.CompletionCreateParamsStreaming),
    TypeAdapter(completion_create_params.CompletionCreateParamsNonStreaming),
    _all_fields(completion_create_params.CompletionCreateParamsStreaming),
    _chat,
    {"error": {"message": "overloaded", "type": "server_error", "code": 503}},
    named=False,
)
RESPONSES = Vendor(
    "responses",
    "/responses",
    TypeAdapter(response_create_params.ResponseCreateParamsStreaming),
    TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming),
    _all_fields(response_create_params.ResponseCreateParamsStreaming),
    _responses,
    plain(
        responses.ResponseErrorEvent(
            type="error", message="overloaded", code="server_error", param=None, sequence_number=1
        )
    ),
    named=True,
)
MESSAGES = Vendor(
    "messages",
    "/messages",
    TypeAdapter(MessageCreateParamsStreaming),
    TypeAdapter(MessageCreateParamsNonStreaming),
    _all_fields(MessageCreateParamsStreaming),
    _messages,
    {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}},
    named=True,
)
VENDORS = (CHAT, RESPONSES, MESSAGES)


@dataclass
class Played:
    """What a server of one vendor was asked, and with which headers. Every request is checked."""

    vendor: Vendor
    replies: list[web.Response | bytes | Callable[[Event], web.Response | bytes]]
    asked: list[Event] = field(default_factory=list[Event])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next reply; the last one again and again. Bytes are a stream, which is broken off after them."""
        body = orjson.loads(await request.read())
        self.vendor.check(body)
        self.asked.append(body)
        self.headers.append(request.headers)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if callable(reply) and not isinstance(reply, web.Response):
            reply = reply(body)
        if isinstance(reply, web.Response):
            return web.Response(body=reply.body, status=reply.status, headers=reply.headers)
        return web.Response(body=reply, headers={"Content-Type": "text/event-stream"})


def refused(text: str, status: int = 400, **fields: object) -> web.Response:
    """A refusal with these words."""
    return web.json_response({"error": {"message": text, **fields}}, status=status)


@asynccontextmanager
async def playing(
    vendor: Vendor,
    *replies: web.Response | bytes | Callable[[Event], web.Response | bytes],
    reasoning: Reasoning | None = None,
    wire: str | None = None,
) -> AsyncGenerator[tuple[EndpointModel, Played]]:
    """A server of this vendor, and a model that asks it over the vendor's wire."""
    played = Played(vendor, list(replies))
    app = web.Application()
    app.router.add_post(f"/v1{vendor.path}", played.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    guard.admit(address)
    model = EndpointModel(
        HttpTransport(address, "sk-secret"),
        "m",
        FakeClock(auto_advance=True),
        retry=RetryPolicy(attempts=3, per_call=20),
        random=Random(1),
        wire=vendor.wire if wire is None else wire,
        reasoning=reasoning,
    )
    try:
        yield model, played
    finally:
        await model.close()
        await runner.cleanup()
        guard.retract(address)
