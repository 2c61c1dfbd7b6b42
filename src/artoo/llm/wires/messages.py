"""The wire `messages`, for Anthropic's `/v1/messages`, with cache marks and thinking budgets.

The functions are pure.

Cache marks are placed at the end of the tools, of the system prompt and of the two newest user messages. Blocks
with thoughts are sent back with their signatures at their original positions. The format no longer has a
temperature and a seed. Another variant of an answer is therefore obtained by asking again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from artoo.contracts.conversation import ModelTurn, Returned
from artoo.contracts.events import Usage
from artoo.contracts.request import AttachedImage
from artoo.contracts.text import well_formed
from artoo.llm.completion import Called, Completion, count_of, text_of, usage_of
from artoo.llm.prompt import Exchange, Prompt, exchanges
from artoo.llm.schema import schema_of
from artoo.llm.streamed import Event, objects
from artoo.llm.transport import Json
from artoo.llm.wires.how import CALL, TEXT, Form, How, Wire, in_place, kept_thoughts

# The field of a turn's reasoning that contains the blocks. Marks in it stand for the text and the calls.
BLOCKS = "thinking_blocks"

_CACHED = {"type": "ephemeral"}
# Maps the reasons why an answer ended to those of a chat completion.
_STOPPED = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
# Number of tokens for thoughts, for models that need a number.
_THINKING = {"low": 2_048, "medium": 8_192, "high": 16_384}
# The mark of the newest message is written for the next request, and the mark of the message before is read by this
# one. Both are needed because a message may contain more blocks than the server searches for an earlier mark.
_CACHED_MESSAGES = 2

Block = dict[str, object]


def _body_of(prompt: Prompt, how: How) -> dict[str, object]:
    """Build the body of a request. In the turns of a conversation, tools and messages differ only in their cache
    marks.
    """
    body: dict[str, object] = {"model": how.model, "max_tokens": how.limit}
    if prompt.tools and how.has("tools"):
        body["tools"] = _marked(
            [_tool(spec.name, spec.description, spec.json_schema()) for spec in prompt.tools], how
        )
    if how.has("system"):
        body["system"] = _marked([{"type": "text", "text": well_formed(prompt.system)}], how)
    body["messages"] = _messages(prompt, how)
    if how.stream and how.has("stream"):
        body["stream"] = True
    if how.stop and how.has("stop"):
        body["stop_sequences"] = list(how.stop)
    forced = prompt.schema is not None and how.form is Form.FORCED_TOOL
    body |= {} if forced else _thinking(how, cast(int, body["max_tokens"]))
    return _with_form(body, prompt, how)


def _thinking(how: How, max_tokens: int) -> dict[str, object]:
    if how.traits.reasoning is None or not how.has("reasoning"):
        return {}
    if how.traits.reasoning == "off":
        return {"thinking": {"type": "disabled"}}
    if how.has("adaptive"):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": how.traits.reasoning}}
    tokens = _THINKING[how.traits.reasoning]
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}, "max_tokens": max_tokens + tokens}


def _with_form(body: dict[str, object], prompt: Prompt, how: How) -> dict[str, object]:
    if prompt.schema is None or not how.has(how.form.value):
        return body
    schema = schema_of(prompt.schema)
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
    """Put a cache mark on the last block. The server caches the prompt up to this block."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": _CACHED}] if blocks and how.has("cache") else blocks


def _messages(prompt: Prompt, how: How) -> list[dict[str, object]]:
    made: list[tuple[str, list[Block]]] = []
    for part in exchanges(prompt.messages):
        if isinstance(part, ModelTurn):
            thoughts = part.reasoning is not None and how.has("thoughts")
            made.append(("assistant", list(_turn(part, thoughts=thoughts))))
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
        text = [{"type": "text", "text": "(empty)"}]  # the server refuses a block that is empty
    calls: list[Block] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in turn.calls
    ]
    yield from in_place(turn, BLOCKS, text, calls, thoughts=thoughts)


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


def _words(event: Mapping[str, Json]) -> str:
    """Return the part of the answer's visible text that a stream event contains."""
    delta = event.get("delta") if event.get("type") == "content_block_delta" else None
    said = delta.get("text") if isinstance(delta, dict) and delta.get("type") == "text_delta" else ""
    return said if isinstance(said, str) else ""


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
                return {**message, "content": [blocks[at] for at in sorted(blocks)]}
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


def _completion(body: dict[str, Json]) -> Completion | None:
    if not isinstance(body.get("content"), list):
        return None
    said: list[str] = []
    thoughts: list[str] = []
    calls: list[Called] = []
    kept: list[Json] = []
    for block in objects(body["content"]):
        match block.get("type"):
            case "text":
                said.append(text_of(block.get("text")))
                kept.append(TEXT)
            case "tool_use":
                arguments = block.get("partial") or block.get("input")
                calls.append(Called(text_of(block.get("id")), text_of(block.get("name")), arguments))
                kept.append(CALL)
            case "thinking" | "redacted_thinking":
                thoughts.append(text_of(block.get("thinking")))
                kept.append(block)
            case _:
                pass  # blocks of tools that were not offered
    content, stopped = "".join(said), _STOPPED.get(text_of(body.get("stop_reason")), "")
    refused = stopped == "content_filter"
    return Completion(
        content=content,
        calls=tuple(calls),
        thoughts="\n".join(thoughts),
        finish=stopped or ("tool_calls" if calls else "stop"),
        model=text_of(body.get("model")),
        usage=_usage(body.get("usage")),
        refusal=(content or "the model's provider stopped the answer") if refused else "",
        reasoning=kept_thoughts(BLOCKS, kept),
    )


def _usage(used: Json) -> Usage | None:
    """Parse the token counts. This format counts the tokens that were read from the cache, or written to it,
    separately from the prompt."""
    if not isinstance(used, dict):
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    fresh, written, cached, completion = (count_of(used.get(name)) for name in names)
    return usage_of(fresh + written + cached, completion, cached)


WIRE = Wire("/messages", _body_of, _words, _gathered, _completion)
