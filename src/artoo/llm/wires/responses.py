"""The wire `responses`, for OpenAI's `/responses`, with encrypted reasoning items.

The server does not store the conversation. The functions are pure.

The server encrypts its reasoning items. They are sent back at their original positions, so that the model keeps its
thoughts between the turns of a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

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

# The field of a turn's reasoning that contains the items. Marks in it stand for the text and the calls.
ITEMS = "reasoning_items"

# Maps the reasons why an answer is incomplete to those of a chat completion.
_STOPPED = {"max_output_tokens": "length", "content_filter": "content_filter"}


def _body_of(prompt: Prompt, how: How) -> dict[str, object]:
    """Build the body of a request. Tools and items have the same bytes in every turn of a conversation, so that the
    server can cache them."""
    body: dict[str, object] = {"model": how.model, "store": False}
    if how.has("system"):
        body["instructions"] = well_formed(prompt.system)
    body["input"] = _items(prompt, how)
    if prompt.tools and how.has("tools"):
        body["tools"] = [_function(spec.name, spec.description, spec.json_schema()) for spec in prompt.tools]
    if how.has("thoughts"):
        body["include"] = ["reasoning.encrypted_content"]
    if how.stream and how.has("stream"):
        body["stream"] = True
    if how.has("temperature"):
        body["temperature"] = how.temperature
    if how.has("limit"):
        body["max_output_tokens"] = how.limit
    if how.traits.reasoning is not None and how.has("reasoning"):
        body["reasoning"] = {"effort": "none" if how.traits.reasoning == "off" else how.traits.reasoning}
    if prompt.key and how.has("cache"):
        body["prompt_cache_key"] = prompt.key
    return body | _form(prompt, how)


def _form(prompt: Prompt, how: How) -> dict[str, object]:
    if prompt.schema is None or not how.has(how.form.value):
        return {}
    schema = schema_of(prompt.schema)
    match how.form:
        case Form.JSON_SCHEMA:
            named = {"type": "json_schema", "name": prompt.contract, "schema": schema, "strict": False}
            return {"text": {"format": named}}
        case Form.FORCED_TOOL:
            chosen = {"type": "function", "name": prompt.contract}
            return {"tools": [_function(prompt.contract, "Give the answer.", schema)], "tool_choice": chosen}
        case Form.JSON_OBJECT:
            return {"text": {"format": {"type": "json_object"}}}
        case _:
            return {}


def _function(name: str, description: str, schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


def _items(prompt: Prompt, how: How) -> list[Mapping[str, object]]:
    items: list[Mapping[str, object]] = []
    if not how.has("system"):
        items.append({"role": "user", "content": well_formed(prompt.system)})
    for part in exchanges(prompt.messages):
        if isinstance(part, ModelTurn):
            items += _turn(part, thoughts=how.has("thoughts"))
        else:
            items += _user(part, prompt.pictures)
    return items


def _turn(turn: ModelTurn, *, thoughts: bool) -> Iterator[Mapping[str, object]]:
    """Yield a turn as its original items. Thoughts come before the text or the call that follows from them."""
    text = [{"role": "assistant", "content": turn.text}] if turn.text or not turn.calls else []
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": orjson.dumps(call.arguments).decode(),
        }
        for call in turn.calls
    ]
    yield from in_place(turn, ITEMS, text, calls, thoughts=thoughts)


def _user(part: Exchange, pictures: Mapping[str, str]) -> Iterator[dict[str, object]]:
    for each in part.returned:
        yield {"type": "function_call_output", "call_id": each.call_id, "output": _output(each, pictures)}
    shown = _shown(part.images, pictures)
    if part.said:
        words = [{"type": "input_text", "text": part.text}]
        yield {"role": "user", "content": [*words, *shown] if shown else part.text}


def _output(result: Returned, pictures: Mapping[str, str]) -> object:
    shown = _shown(result.images, pictures)
    return [{"type": "input_text", "text": result.text}, *shown] if shown else result.text


def _shown(images: Sequence[AttachedImage], pictures: Mapping[str, str]) -> list[dict[str, object]]:
    urls = (pictures.get(image.sha256) for image in images)
    return [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls if url]


def _words(event: Mapping[str, Json]) -> str:
    """Return the part of the answer's visible text that a stream event contains."""
    said = event.get("delta") if event.get("type") == "response.output_text.delta" else ""
    return said if isinstance(said, str) else ""


def _gathered(events: Sequence[Event]) -> Json:
    items: list[Event] = []
    for event in events:
        kind, response = event.get("type"), event.get("response")
        if kind == "error" or event.get("error"):
            return {"error": event.get("error") or event}
        if kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            items.append(item)
        if isinstance(response, dict) and kind == "response.failed":
            return {"error": response.get("error") or {"message": "the response failed"}}
        if isinstance(response, dict) and kind in ("response.completed", "response.incomplete"):
            return response if response.get("output") else {**response, "output": cast(Json, items)}
    return None


def _completion(body: dict[str, Json]) -> Completion | None:
    if not isinstance(body.get("output"), list):
        return None
    said: list[Event] = []
    calls: list[Called] = []
    kept: list[Json] = []
    thoughts: list[Event] = []
    for item in objects(body["output"]):
        match item.get("type"):
            case "message":
                said += objects(item.get("content"))
                kept.append(TEXT)
            case "function_call":
                called = Called(text_of(item.get("call_id")), text_of(item.get("name")), item.get("arguments"))
                calls.append(called)
                kept.append(CALL)
            case "reasoning":
                thoughts += [*objects(item.get("summary")), *objects(item.get("content"))]
                kept.append({name: value for name, value in item.items() if value is not None and name != "status"})
            case _:
                pass  # items of tools that were not offered
    details, counts = body.get("incomplete_details"), body.get("usage")
    reason = text_of(details.get("reason")) if isinstance(details, dict) else ""
    return Completion(
        content="".join(text_of(part.get("text")) for part in said if part.get("type") == "output_text"),
        calls=tuple(calls),
        thoughts="\n".join(text_of(part.get("text")) for part in thoughts),
        finish=_STOPPED.get(reason) or ("tool_calls" if calls else "stop"),
        model=text_of(body.get("model")),
        usage=_usage(counts) if isinstance(counts, dict) else None,
        refusal="".join(text_of(part.get("refusal")) for part in said if part.get("type") == "refusal"),
        reasoning=kept_thoughts(ITEMS, kept),
    )


def _usage(counts: Mapping[str, Json]) -> Usage | None:
    details = counts.get("input_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return usage_of(count_of(counts.get("input_tokens")), count_of(counts.get("output_tokens")), cached)


WIRE = Wire("/responses", _body_of, _words, _gathered, _completion)
