"""A chat completion that came in pieces although nobody asked for that: some gateways always stream (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import orjson

from artoo.llm.jsontext import read_leniently
from artoo.llm.transport import Json

CONTENT_TYPE = "text/event-stream"

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_END = b"[DONE]"


def completion_in(raw: bytes) -> Json:
    """The completion of an event stream, or the error that it carries; None when it was cut or is another's."""
    message: dict[str, Json] = {}
    arguments: dict[int, dict[str, Json]] = {}
    finish: Json = None
    whole, rest = False, dict[str, Json]()
    for data in _events(raw):
        if data == _END:
            whole = True
            break
        event = _object(data)
        if event is None:
            return None  # what it said is missing in the answer
        if event.get("error"):
            return event
        rest |= {name: event[name] for name in ("id", "model", "usage") if event.get(name) is not None}
        for choice in _objects(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            finish = choice.get("finish_reason") or finish
            piece = choice.get("delta") or choice.get("message")
            _add(message, arguments, piece if isinstance(piece, dict) else {})
    if not (whole or finish) or not (message or arguments or finish):
        return None
    if arguments:
        message["tool_calls"] = [{"function": arguments[index]} for index in sorted(arguments)]
    return {**rest, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _add(message: dict[str, Json], arguments: dict[int, dict[str, Json]], piece: dict[str, Json]) -> None:
    for name in _TEXTS:
        said, before = piece.get(name), message.get(name)
        if isinstance(said, str):
            message[name] = (before if isinstance(before, str) else "") + said
    for call in _objects(piece.get("tool_calls")):
        index, function = call.get("index", 0), call.get("function")
        if not isinstance(index, int) or not isinstance(function, dict):
            continue
        made, name, said = arguments.setdefault(index, {}), function.get("name"), function.get("arguments")
        made |= {"name": name} if name and "name" not in made else {}
        before = made.get("arguments")
        if isinstance(said, str):
            made["arguments"] = (before if isinstance(before, str) else "") + said


def _events(raw: bytes) -> Iterator[bytes]:
    """The data of each event. Nobody who streams completions writes one over several lines."""
    for line in raw.splitlines():
        if line.startswith(b"data:"):
            yield line.removeprefix(b"data:").strip()


def _object(data: bytes) -> dict[str, Json] | None:
    try:
        found: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = cast("Json", read_leniently(data))
    return found if isinstance(found, dict) else None


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
