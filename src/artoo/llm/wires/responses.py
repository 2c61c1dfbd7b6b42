"""The wire `responses`: OpenAI's `/responses`, with nothing stored there (pure).

Reasoning items are encrypted by the server and sent back in the place where they stood, so that a model keeps its
thoughts between the turns of a conversation.
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

PATH = "/responses"

ITEMS = "reasoning_items"
"""The field of a turn's reasoning that holds the items, and marks for the places of its text and calls."""

_TEXT, _CALL = {"type": "text"}, {"type": "call"}


def body_of(prompt: Prompt, how: How) -> dict[str, object]:
    """The body of a request. Its tools and items are the same bytes in every turn of a conversation."""
    body: dict[str, object] = {"model": how.model, "store": False}
    if how.has("system"):
        body["instructions"] = well_formed(prompt.system)
    body["input"] = _items(prompt, how)
    if prompt.tools:
        body["tools"] = [_function(spec.name, spec.description, spec.json_schema()) for spec in prompt.tools]
    if how.has("thoughts"):
        body["include"] = ["reasoning.encrypted_content"]
    if how.stream:
        body["stream"] = True
    if how.has("temperature"):
        body["temperature"] = how.temperature
    if how.max_tokens is not None:
        body["max_output_tokens"] = how.max_tokens
    if how.reasoning is not None and how.has("reasoning"):
        body["reasoning"] = {"effort": "none" if how.reasoning == "off" else how.reasoning}
    if prompt.key and how.has("cache"):
        body["prompt_cache_key"] = prompt.key
    return body | _form(prompt, how)


def _form(prompt: Prompt, how: How) -> dict[str, object]:
    if prompt.schema is None:
        return {}
    schema, strict = answer_schema(prompt.schema, wants_strict=how.strict)
    match how.form:
        case Form.JSON_SCHEMA:
            named = {"type": "json_schema", "name": prompt.contract, "schema": schema, "strict": strict}
            return {"text": {"format": named}}
        case Form.FORCED_TOOL:
            chosen = {"type": "function", "name": prompt.contract}
            return {"tools": [_function(prompt.contract, "Give the answer.", schema)], "tool_choice": chosen}
        case Form.JSON_OBJECT:
            return {"text": {"format": {"type": "json_object"}}}
        case _:
            return {}


def _function(name: str, description: str, schema: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": False,
    }


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
    """A turn as the items that it came as: thoughts stand before what they led to."""
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
    kept = cast("dict[str, Json]", turn.reasoning).get(ITEMS) if isinstance(turn.reasoning, dict) else None
    for item in objects(kept):
        if item == _TEXT:
            yield from text
            text = []
        elif item == _CALL:
            yield from calls[:1]
            calls = calls[1:]
        elif thoughts:
            yield item
    yield from (*text, *calls)


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


def words(event: Mapping[str, Json]) -> str:
    """The words of an answer that an event of a stream brings, for people to read."""
    said = event.get("delta") if event.get("type") == "response.output_text.delta" else ""
    return said if isinstance(said, str) else ""


def whole(reply: TransportReply) -> TransportReply:
    """A reply as a chat completion; a stream that was cut has no body."""
    if reply.events:
        return reply._replace(body=_gathered(reply.events))
    body = reply.body
    if isinstance(body, dict) and isinstance(body.get("output"), list):
        return reply._replace(body=_completion(body))
    return reply


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
            return _completion(response if response.get("output") else {**response, "output": cast(Json, items)})
    return None


def _completion(response: Mapping[str, Json]) -> dict[str, Json]:
    if response.get("status") == "failed" and response.get("error"):
        return {"error": response["error"]}
    said: list[str] = []
    refused: list[str] = []
    calls: list[Json] = []
    kept: list[Json] = []
    thoughts: list[str] = []
    for item in objects(response.get("output")):
        match item.get("type"):
            case "message":
                parts = objects(item.get("content"))
                said += [str(part["text"]) for part in parts if part.get("type") == "output_text"]
                refused += [str(part["refusal"]) for part in parts if part.get("type") == "refusal"]
                kept.append(cast(Json, _TEXT))
            case "function_call":
                function: Json = {"name": item.get("name"), "arguments": item.get("arguments")}
                calls.append({"id": item.get("call_id"), "type": "function", "function": function})
                kept.append(cast(Json, _CALL))
            case "reasoning":
                both = [*objects(item.get("summary")), *objects(item.get("content"))]
                thoughts += [str(part.get("text") or "") for part in both]
                kept.append({name: value for name, value in item.items() if value is not None and name != "status"})
            case _:
                pass  # items of tools that were never offered
    message: dict[str, Json] = {"role": "assistant", "content": "".join(said)}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"refusal": "".join(refused)} if refused else {}
    if any(item not in (_TEXT, _CALL) for item in kept):
        message |= {ITEMS: kept, "reasoning": "\n".join(thoughts)}
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    cut = {"max_output_tokens": "length", "content_filter": "content_filter"}
    finish = cut.get(str(reason)) or ("tool_calls" if calls else "stop")
    rest = {name: response[name] for name in ("id", "model", "usage") if response.get(name) is not None}
    return {**rest, **completion(message, finish)}
