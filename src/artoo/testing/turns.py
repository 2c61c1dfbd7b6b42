"""Send a scripted step as native tool calls, or as stream events.

An entry of a script is one step of the executor in the text dialect. If a request has `tools`, it gets this step as
native calls, so that one script works for both dialects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import orjson

from artoo.contracts.conversation import ModelTurn
from artoo.llm.text.jsontext import objects_in
from artoo.llm.text.reading import Unreadable
from artoo.llm.text.steps import turn_of
from artoo.llm.transport import Json
from artoo.ports.tools import Parameter, ToolSpec
from artoo.testing.replies import Ending, Reply

_LANGUAGES = {"shell": ("bash", "sh"), "python": ("python", "py")}
_PIECES = 3


def natively(reply: Reply, body: Mapping[str, Json], number: int) -> Reply:
    """Return the reply with a scripted step as native tool calls. Other texts and faults are returned unchanged.

    `number` is used to make the ids of the calls unique.
    """
    if reply.text is None or reply.status != 200 or reply.finish != "stop":
        return reply
    specs = tuple(_specs(body))
    try:
        turn = turn_of(reply.text, specs, f"call_{number}")
    except Unreadable:
        return reply
    # Text without a call or an object is an answer or a fault, and a native client receives it unchanged.
    if not turn.calls and not objects_in(reply.text):
        return reply
    return replace(reply, text=None, message=_message(turn), finish="tool_calls" if turn.calls else "stop")


def _specs(body: Mapping[str, Json]) -> Iterator[ToolSpec]:
    """Return the offered tools. A fenced block in a script becomes the last required text argument that the step
    does not give."""
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        function = cast("dict[str, Json]", cast("dict[str, Json]", tool)["function"])
        schema = cast("dict[str, Json]", function["parameters"])
        required = cast("list[str]", schema.get("required") or [])
        parameters = tuple(
            Parameter(name, "", required=name in required, schema=cast("Mapping[str, Json]", kind))
            for name, kind in cast("dict[str, Json]", schema.get("properties") or {}).items()
        )
        name = str(function["name"])
        texts = [one.name for one in parameters if one.required and one.schema.get("type") == "string"]
        yield ToolSpec(
            name,
            "",
            parameters,
            0,
            body=texts[-1] if len(texts) > 1 or name in _LANGUAGES else None,
            whole_lines=name not in _LANGUAGES,
            languages=_LANGUAGES.get(name, ()),
            writes=True,
        )


def _message(turn: ModelTurn) -> Mapping[str, object]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()},
        }
        for call in turn.calls
    ]
    said = {"role": "assistant", "content": turn.text or None}
    return {**said, "tool_calls": calls} if calls else said


def chunks(body: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the stream events of a whole chat completion. The usage comes last, in an event without a choice."""
    choice = cast("list[dict[str, object]]", body["choices"])[0]
    message = cast("dict[str, object]", choice["message"])
    frame = {"id": body["id"], "object": "chat.completion.chunk", "created": 0, "model": body["model"]}

    def chunk(delta: dict[str, object], finish: object = None) -> dict[str, object]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    made = [chunk({"role": "assistant"})]
    for name, value in message.items():
        if name == "tool_calls":
            calls = cast("list[dict[str, object]]", value)
            made += [chunk({"tool_calls": [piece]}) for at, call in enumerate(calls) for piece in _call(at, call)]
        elif isinstance(value, str) and name != "role":
            made += [chunk({name: piece}) for piece in _pieces(value)]
        elif name != "role":
            made.append(chunk({name: value}))
    return [*made, chunk({}, choice["finish_reason"]), {**frame, "choices": [], "usage": body["usage"]}]


def _call(index: int, call: Mapping[str, object]) -> Iterator[dict[str, object]]:
    function = cast("dict[str, str]", call["function"])
    yield {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
    for piece in _pieces(function["arguments"]):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // _PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def is_streamed(reply: Reply, body: Mapping[str, Json]) -> bool:
    """Return whether the client asked for a stream and the reply can be streamed."""
    return body.get("stream") is True and reply.status == 200 and reply.ending is not Ending.STALL
