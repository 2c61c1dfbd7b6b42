"""The wire `chat`: any OpenAI-compatible `/chat/completions` (pure).

A conversation becomes messages of the roles system, user, assistant and tool. Images of tool results follow in a
user message, because tool messages hold text alone on most servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.images import AttachedImage
from artoo.contracts.well_formed import well_formed
from artoo.llm.prompt import Exchange, Prompt, exchanges
from artoo.llm.streamed import DONE
from artoo.llm.transport import Json, TransportReply
from artoo.ports.tools import ToolSpec

PATH = "/chat/completions"

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_SENT_BACK = ("reasoning_content", "reasoning", "reasoning_details")


def messages_of(prompt: Prompt, system: str) -> list[dict[str, object]]:
    """The messages of a request, the system prompt first."""
    messages: list[dict[str, object]] = [{"role": "system", "content": well_formed(system)}]
    for part in exchanges(prompt.messages):
        messages += [_assistant(part)] if isinstance(part, ModelTurn) else _user(part, prompt.pictures)
    return messages


def tools_of(specs: Sequence[ToolSpec]) -> list[dict[str, object]]:
    """The tools as functions."""
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.json_schema()},
        }
        for spec in specs
    ]


def _assistant(turn: ModelTurn) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": turn.text or (None if turn.calls else "")}
    if isinstance(turn.reasoning, dict):
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


def words(event: Mapping[str, Json]) -> str:
    """The words of an answer that an event of a stream brings, for people to read."""
    for choice in _objects(event.get("choices")):
        piece = choice.get("delta") or choice.get("message")
        if choice.get("index", 0) == 0 and isinstance(piece, dict):
            said = piece.get("content")
            return said if isinstance(said, str) else ""
    return ""


def whole(reply: TransportReply) -> TransportReply:
    """A reply with the completion that its events make up; one that was cut, or is another's, has no body."""
    return reply._replace(body=_gathered(reply.events)) if reply.events else reply


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
        for choice in _objects(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            finish = choice.get("finish_reason") or finish
            ended = ended or "message" in choice  # one that came whole
            piece = choice.get("delta") or choice.get("message")
            _add(message, calls, piece if isinstance(piece, dict) else {})
    if not (ended or finish) or not (message or calls or finish):
        return None
    if calls:
        message["tool_calls"] = cast(Json, calls)
    return {**rest, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _add(message: dict[str, Json], calls: list[dict[str, Json]], piece: dict[str, Json]) -> None:
    for name in _TEXTS:
        said, before = piece.get(name), message.get(name)
        if isinstance(said, str):
            message[name] = (before if isinstance(before, str) else "") + said
    details, before = piece.get("reasoning_details"), message.get("reasoning_details")
    if isinstance(details, list):
        message["reasoning_details"] = [*(before if isinstance(before, list) else ()), *details]
    for call in _objects(piece.get("tool_calls")):
        _add_call(calls, call)


def _add_call(calls: list[dict[str, Json]], piece: dict[str, Json]) -> None:
    """Join a piece of a call to the call it belongs to: by its index, and a further id begins a further call.

    Some servers give every call the index 0, some leave the index out, some repeat the id in every piece.
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


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
