"""The wire `messages`: Anthropic's `/v1/messages` (pure).

Cache marks stand at the end of the tools, of the system prompt and of the two newest messages of the user's side.
Thinking blocks are sent back with their signatures, in the place where they stood. The format has no temperature
and no seed any more: another variant of an answer is what the model says when it is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from artoo.contracts.conversation import ModelTurn, Returned
from artoo.contracts.images import AttachedImage
from artoo.contracts.well_formed import well_formed
from artoo.llm.prompt import Exchange, Prompt, exchanges
from artoo.llm.streamed import Event, objects
from artoo.llm.transport import Json, TransportReply
from artoo.llm.wires.chat import completion
from artoo.llm.wires.how import Form, How, answer_schema

PATH = "/messages"

BLOCKS = "thinking_blocks"
"""The field of a turn's reasoning that holds the blocks, and marks for the places of its text and calls."""

_TEXT, _CALL = {"type": "text"}, {"type": "call"}
_CACHED = {"type": "ephemeral"}
_LEAST_TOKENS = 4_096
_THINKING = {"low": 2_048, "medium": 8_192, "high": 16_384}
"""Tokens for thoughts, for models that want a number."""
_CACHED_MESSAGES = 2
"""The newest message's mark is written, the one before it is read: a message may hold more blocks than are searched
for an earlier mark."""

Block = dict[str, object]


def body_of(prompt: Prompt, how: How) -> dict[str, object]:
    """The body of a request. Its tools and messages differ from an earlier turn's only in their cache marks."""
    body: dict[str, object] = {"model": how.model, "max_tokens": how.max_tokens or _LEAST_TOKENS}
    if prompt.tools:
        body["tools"] = _marked(
            [_tool(spec.name, spec.description, spec.json_schema()) for spec in prompt.tools], how
        )
    if how.has("system"):
        body["system"] = _marked([{"type": "text", "text": well_formed(prompt.system)}], how)
    body["messages"] = _messages(prompt, how)
    if how.stream:
        body["stream"] = True
    if how.stop and how.has("stop"):
        body["stop_sequences"] = list(how.stop)
    forced = prompt.schema is not None and how.form is Form.FORCED_TOOL
    body |= {} if forced else _thinking(how, cast(int, body["max_tokens"]))
    return _with_form(body, prompt, how)


def _thinking(how: How, max_tokens: int) -> dict[str, object]:
    if how.reasoning is None or not how.has("reasoning"):
        return {}
    if how.reasoning == "off":
        return {"thinking": {"type": "disabled"}}
    if how.has("adaptive"):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": how.reasoning}}
    tokens = _THINKING[how.reasoning]
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}, "max_tokens": max_tokens + tokens}


def _with_form(body: dict[str, object], prompt: Prompt, how: How) -> dict[str, object]:
    if prompt.schema is None:
        return body
    schema, _ = answer_schema(prompt.schema, wants_strict=True)
    if how.form is Form.JSON_SCHEMA:
        given = cast("dict[str, object]", body.get("output_config", {}))
        body["output_config"] = {**given, "format": {"type": "json_schema", "schema": schema}}
    elif how.form is Form.FORCED_TOOL:
        body["tools"] = [_tool(prompt.contract, "Give the answer.", schema)]
        body["tool_choice"] = {"type": "tool", "name": prompt.contract}
    return body


def _tool(name: str, description: str, schema: Mapping[str, object]) -> Block:
    return {"name": name, "description": description, "input_schema": schema}


def _marked(blocks: list[Block], how: How) -> list[Block]:
    """The blocks, the last one with a mark up to which the server keeps the prompt."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHED}] if blocks and how.has("cache") else blocks


def _messages(prompt: Prompt, how: How) -> list[dict[str, object]]:
    made: list[tuple[str, list[Block]]] = []
    for part in exchanges(prompt.messages):
        if isinstance(part, ModelTurn):
            made.append(("assistant", list(_turn(part, thoughts=how.has("thoughts")))))
        else:
            made.append(("user", list(_user(part, prompt.pictures))))
    if not how.has("system"):
        made[0] = ("user", [{"type": "text", "text": well_formed(prompt.system)}, *made[0][1]])
    marked = [at for at, (role, _) in enumerate(made) if role == "user"][-_CACHED_MESSAGES:]
    return [
        {"role": role, "content": _marked(blocks, how) if at in marked else blocks}
        for at, (role, blocks) in enumerate(made)
    ]


def _turn(turn: ModelTurn, *, thoughts: bool) -> Iterator[Block]:
    text: list[Block] = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
    if not text and not turn.calls:
        text = [{"type": "text", "text": "(empty)"}]  # the server refuses an empty block
    calls: list[Block] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in turn.calls
    ]
    kept = cast("dict[str, Json]", turn.reasoning).get(BLOCKS) if isinstance(turn.reasoning, dict) else None
    for block in objects(kept):
        if block == _TEXT:
            yield from text
            text = []
        elif block == _CALL:
            yield from calls[:1]
            calls = calls[1:]
        elif thoughts:
            yield cast(Block, block)
    yield from (*text, *calls)


def _user(part: Exchange, pictures: Mapping[str, str]) -> Iterator[Block]:
    for each in part.returned:
        yield {"type": "tool_result", "tool_use_id": each.call_id, "content": _result(each, pictures)}
    if part.text.strip():
        yield {"type": "text", "text": part.text}
    yield from _shown(part.images, pictures)


def _result(result: Returned, pictures: Mapping[str, str]) -> object:
    shown = list(_shown(result.images, pictures))
    text = result.text if result.text.strip() else "(empty)"
    return [{"type": "text", "text": text}, *shown] if shown else text


def _shown(images: Sequence[AttachedImage], pictures: Mapping[str, str]) -> Iterator[Block]:
    for image in images:
        _, comma, data = pictures.get(image.sha256, "").partition(",")
        if comma:
            source = {"type": "base64", "media_type": image.media_type, "data": data}
            yield {"type": "image", "source": source}


def words(event: Mapping[str, Json]) -> str:
    """The words of an answer that an event of a stream brings, for people to read."""
    delta = event.get("delta") if event.get("type") == "content_block_delta" else None
    said = delta.get("text") if isinstance(delta, dict) and delta.get("type") == "text_delta" else ""
    return said if isinstance(said, str) else ""


def whole(reply: TransportReply) -> TransportReply:
    """A reply as a chat completion; a stream that was cut has no body."""
    if reply.events:
        return reply._replace(body=_gathered(reply.events))
    body = reply.body
    if isinstance(body, dict) and body.get("type") == "error":
        return reply._replace(body={"error": body.get("error") or {"message": "no explanation"}})
    if isinstance(body, dict) and isinstance(body.get("content"), list):
        return reply._replace(body=_completion(body))
    return reply


def _gathered(events: Sequence[Event]) -> Json:
    message: Event = {}
    blocks: dict[int, Event] = {}
    for event in events:
        index, delta, given = event.get("index"), event.get("delta"), event.get("message")
        match event.get("type"):
            case "error":
                return {"error": event.get("error") or {"message": "no explanation"}}
            case "message_start" if isinstance(given, dict):
                message = dict(given)
            case "content_block_start" if isinstance(index, int) and isinstance(event.get("content_block"), dict):
                blocks[index] = dict(cast(Event, event["content_block"]))
            case "content_block_delta" if isinstance(index, int) and isinstance(delta, dict):
                _add(blocks.setdefault(index, {}), delta)
            case "message_delta":
                message |= delta if isinstance(delta, dict) else {}
                used, more = message.get("usage"), event.get("usage")
                before = used if isinstance(used, dict) else {}
                later = {name: count for name, count in more.items() if count} if isinstance(more, dict) else {}
                message["usage"] = {**before, **later}
            case "message_stop":
                return _completion({**message, "content": [blocks[at] for at in sorted(blocks)]})
            case _:
                if event.get("error"):
                    return dict(event)
    return None


def _add(block: Event, delta: Event) -> None:
    names = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
    kind = str(delta.get("type"))
    if kind == "input_json_delta":
        before = block.get("partial")
        block["partial"] = (before if isinstance(before, str) else "") + str(delta.get("partial_json") or "")
    elif kind in names:
        before = block.get(names[kind])
        block[names[kind]] = (before if isinstance(before, str) else "") + str(delta.get(names[kind]) or "")


def _completion(given: Mapping[str, Json]) -> dict[str, Json]:
    said: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    kept: list[Json] = []
    for block in objects(given.get("content")):
        match block.get("type"):
            case "text":
                said.append(str(block.get("text") or ""))
                kept.append(cast(Json, _TEXT))
            case "tool_use":
                arguments = block.get("partial") or block.get("input")
                text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
                function: Json = {"name": block.get("name"), "arguments": text}
                calls.append({"id": block.get("id"), "type": "function", "function": function})
                kept.append(cast(Json, _CALL))
            case "thinking" | "redacted_thinking":
                thoughts.append(str(block.get("thinking") or ""))
                kept.append(block)
            case _:
                pass  # blocks of tools that were never offered
    message: dict[str, Json] = {"role": "assistant", "content": "".join(said)}
    message |= {"tool_calls": calls} if calls else {}
    if any(block not in (_TEXT, _CALL) for block in kept):
        message |= {BLOCKS: kept, "reasoning": "\n".join(thoughts)}
    cut = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
    finish = cut.get(str(given.get("stop_reason"))) or ("tool_calls" if calls else "stop")
    if finish == "content_filter":
        message["refusal"] = "".join(said) or "the model's provider stopped the answer"
    rest = {name: given[name] for name in ("id", "model") if given.get(name) is not None}
    return {**rest, "usage": _usage(given.get("usage")), **completion(message, finish)}


def _usage(used: Json) -> Json:
    """The counts under the names of a chat completion. Cached tokens are a part of the prompt there."""
    if not isinstance(used, dict):
        return None
    counts = {name: value for name, value in used.items() if isinstance(value, int)}
    cached = counts.get("cache_read_input_tokens", 0)
    return {
        "prompt_tokens": counts.get("input_tokens", 0) + counts.get("cache_creation_input_tokens", 0) + cached,
        "completion_tokens": counts.get("output_tokens", 0),
        "prompt_tokens_details": {"cached_tokens": cached},
    }
