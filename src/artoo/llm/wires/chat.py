"""The wire `chat`, for any OpenAI-compatible `/chat/completions`.

The functions are pure.

A conversation is sent as messages with the roles system, user, assistant and tool. Images in results of tools
follow in a user message, because most servers allow only text in tool messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.events import Usage
from artoo.contracts.request import AttachedImage
from artoo.contracts.text import well_formed
from artoo.llm.completion import Called, Completion, count_of, text_of, usage_of
from artoo.llm.prompt import Exchange, Prompt, exchanges
from artoo.llm.schema import schema_of
from artoo.llm.streamed import DONE, objects
from artoo.llm.transport import Json
from artoo.llm.wires.how import Form, How, Wire

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_SENT_BACK = ("reasoning_content", "reasoning", "reasoning_details")


def _body_of(prompt: Prompt, how: How) -> dict[str, object]:
    """Build the body of a request. Tools and messages have the same bytes in every turn of a conversation, so that
    the server can cache them."""
    body: dict[str, object] = {"model": how.model, "messages": _messages(prompt, how)}
    if prompt.tools and how.has("tools"):
        body["tools"] = [_function(spec.name, spec.description, spec.json_schema()) for spec in prompt.tools]
    if how.stream and how.has("stream"):
        body["stream"] = True
        if how.has("stream_options"):
            body["stream_options"] = {"include_usage": True}
    if how.has("temperature"):
        body["temperature"] = how.temperature
    if how.variant and how.has("seed"):
        body["seed"] = how.variant
    if how.has("max_tokens"):
        body["max_tokens"] = how.limit
    elif how.has("limit"):
        body["max_completion_tokens"] = how.limit
    if how.traits.reasoning is not None and how.has("reasoning"):
        body["reasoning_effort"] = "none" if how.traits.reasoning == "off" else how.traits.reasoning
    if how.traits.is_llama and how.has("cache"):
        body["cache_prompt"] = True
    elif how.traits.is_openai and prompt.key and how.has("cache"):
        body["prompt_cache_key"] = prompt.key
    if how.stop and how.has("stop"):
        body["stop"] = list(how.stop)
    return body | _form(prompt, how)


def _form(prompt: Prompt, how: How) -> dict[str, object]:
    if prompt.schema is None or not how.has(how.form.value):
        return {}
    schema = schema_of(prompt.schema)
    match how.form:
        case Form.JSON_SCHEMA:
            described = {"name": prompt.contract, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case Form.FORCED_TOOL:
            chosen = {"type": "function", "function": {"name": prompt.contract}}
            return {"tools": [_function(prompt.contract, "Give the answer.", schema)], "tool_choice": chosen}
        case Form.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case _:
            return {}


def _messages(prompt: Prompt, how: How) -> list[dict[str, object]]:
    """Build the messages. The system prompt comes first. If the server refuses that, it is in the first user
    message."""
    messages: list[dict[str, object]] = []
    for part in exchanges(prompt.messages):
        if isinstance(part, ModelTurn):
            messages.append(_assistant(part, thoughts=part.reasoning is not None and how.has("thoughts")))
        else:
            messages += _user(part, prompt.pictures)
    if how.has("system"):
        return [{"role": "system", "content": well_formed(prompt.system)}, *messages]
    first = messages[0]
    content = first["content"]
    if isinstance(content, str):
        first["content"] = f"{well_formed(prompt.system)}\n\n{content}"
    else:
        first["content"] = [{"type": "text", "text": well_formed(prompt.system)}, *cast("list[object]", content)]
    return messages


def _function(name: str, description: str, schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _assistant(turn: ModelTurn, *, thoughts: bool) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": turn.text or (None if turn.calls else "")}
    if thoughts and isinstance(turn.reasoning, dict):
        message |= {name: turn.reasoning[name] for name in _SENT_BACK if name in turn.reasoning}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()},
            }
            for call in turn.calls
        ]
    return message


def _user(part: Exchange, pictures: Mapping[str, str]) -> Iterator[dict[str, object]]:
    for each in part.returned:
        yield {"role": "tool", "tool_call_id": each.call_id, "content": each.text}
    shown = _shown([image for each in part.returned for image in each.images] + list(part.images), pictures)
    if shown:
        text = part.text or "The images of the results above."
        yield {"role": "user", "content": [{"type": "text", "text": text}, *shown]}
    elif part.said:
        yield {"role": "user", "content": part.text}


def _shown(images: Sequence[AttachedImage], pictures: Mapping[str, str]) -> list[dict[str, object]]:
    urls = (pictures.get(image.sha256) for image in images)
    return [{"type": "image_url", "image_url": {"url": url}} for url in urls if url]


def _words(event: Mapping[str, Json]) -> str:
    """Return the part of the answer's visible text that a stream event contains."""
    for choice in objects(event.get("choices")):
        piece = choice.get("delta") or choice.get("message")
        if choice.get("index", 0) == 0 and isinstance(piece, dict):
            said = piece.get("content")
            return said if isinstance(said, str) else ""
    return ""


def _gathered(events: Sequence[Mapping[str, Json]]) -> Json:
    message: dict[str, Json] = {}
    calls: list[dict[str, Json]] = []
    finish: Json = None
    ended, rest = False, dict[str, Json]()
    for event in events:
        if event == DONE:
            ended = True
            break
        if event.get("error"):
            return dict(event)
        rest |= {name: event[name] for name in ("id", "model", "usage", "timings") if event.get(name) is not None}
        for choice in objects(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            finish = choice.get("finish_reason") or finish
            ended = ended or "message" in choice  # a complete message instead of a part of it
            piece = choice.get("delta") or choice.get("message")
            _add(message, calls, piece if isinstance(piece, dict) else {})
    if not (ended or finish) or not (message or calls or finish):
        return None
    if calls:
        message["tool_calls"] = cast(Json, calls)
    choice: dict[str, Json] = {"index": 0, "message": message, "finish_reason": finish}
    return {**rest, "choices": [choice]}


def _add(message: dict[str, Json], calls: list[dict[str, Json]], piece: dict[str, Json]) -> None:
    for name in _TEXTS:
        said, before = piece.get(name), message.get(name)
        if isinstance(said, str):
            message[name] = (before if isinstance(before, str) else "") + said
    details, before = piece.get("reasoning_details"), message.get("reasoning_details")
    if isinstance(details, list):
        message["reasoning_details"] = [*(before if isinstance(before, list) else ()), *details]
    for call in objects(piece.get("tool_calls")):
        _add_call(calls, call)


def _add_call(calls: list[dict[str, Json]], piece: dict[str, Json]) -> None:
    """Add a part of a call to the call with the same index. A new id begins another call.

    Some servers give every call the index 0, some omit the index, and some repeat the id in every part.
    """
    function = piece.get("function")
    if not isinstance(function, dict):
        return
    index, own = piece.get("index"), piece.get("id")
    matching = [call for call in calls if call["index"] == index] if isinstance(index, int) else calls
    known = matching[-1] if matching else None
    if known is None or (own and known["id"] and own != known["id"]):
        made: dict[str, Json] = {"name": "", "arguments": ""}
        known = cast("dict[str, Json]", {"index": index, "id": own or "", "type": "function", "function": made})
        calls.append(known)
    known["id"] = known["id"] or own or ""
    whole, name, said = cast("dict[str, Json]", known["function"]), function.get("name"), function.get("arguments")
    if name and not whole["name"]:
        whole["name"] = name
    if isinstance(said, str):
        whole["arguments"] = str(whole["arguments"]) + said
    elif said is not None:
        whole["arguments"] = orjson.dumps(said).decode()


def _completion(body: dict[str, Json]) -> Completion | None:
    """Parse the first choice of an answer. Return None if there is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    found, finish = choice.get("message"), choice.get("finish_reason")
    message = found if isinstance(found, dict) else {}
    kept = {name: message[name] for name in _SENT_BACK if message.get(name)}
    return Completion(
        content=text_of(message.get("content")),
        calls=_calls(message),
        thoughts=text_of(message.get("reasoning_content") or message.get("reasoning")),
        finish=finish if isinstance(finish, str) else "",
        model=text_of(body.get("model")),
        usage=_usage(body),
        refusal=text_of(message.get("refusal")).strip(),
        reasoning=kept or None,
    )


def _calls(message: Mapping[str, Json]) -> tuple[Called, ...]:
    """Parse the native tool calls, in the current form or in the form of old servers."""
    functions = [(call.get("id"), call.get("function")) for call in objects(message.get("tool_calls"))]
    called = [
        Called(text_of(own_id), text_of(function.get("name")), function.get("arguments"))
        for own_id, function in functions or [(None, message.get("function_call"))]
        if isinstance(function, dict)
    ]
    return tuple(call for call in called if call.name or call.arguments)


def _usage(body: Mapping[str, Json]) -> Usage | None:
    """Parse the token counts. They may have the names of the vendor's other API, which some gateways pass on."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    prompt = count_of(usage.get("prompt_tokens")) or count_of(usage.get("input_tokens"))
    completion = count_of(usage.get("completion_tokens")) or count_of(usage.get("output_tokens"))
    return usage_of(prompt, completion, _cached(usage, body))


def _cached(usage: Mapping[str, Json], body: Mapping[str, Json]) -> int:
    """Parse the number of prompt tokens that came from the server's cache, in the form of OpenAI, DeepSeek or
    llama.cpp."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    timings = body.get("timings")
    return (
        (count_of(details.get("cached_tokens")) if isinstance(details, dict) else 0)
        or count_of(usage.get("prompt_cache_hit_tokens"))
        or (count_of(timings.get("cache_n")) if isinstance(timings, dict) else 0)
    )


WIRE = Wire("/chat/completions", _body_of, _words, _gathered, _completion)
