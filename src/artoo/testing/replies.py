"""The replies of a scripted model, and its faults, such as HTTP 429, cut text, fences and thoughts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

from pydantic import BaseModel

Value = BaseModel | Mapping[str, object]


class Ending(StrEnum):
    """How the server sends the reply: the whole reply, a part of it that is cut in the middle, or nothing (after
    `delay`)."""

    WHOLE = "whole"
    CUT = "cut"
    STALL = "stall"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer in a script. `message` replaces the whole message of the assistant. `error` is the text of an
    error status, and `code` is the code of the error. If `code` is "", the status is used.

    `delay` is in seconds of real time.
    """

    text: str | None = None
    status: int = 200
    finish: str = "stop"
    message: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    error: str = ""
    code: str = ""
    ending: Ending = Ending.WHOLE
    delay: float = 0.0
    usage: Mapping[str, object] | None = None


Scripted = Reply | Value | str
"""An entry of a script: a value that is sent as JSON, a raw text, or a Reply."""


def as_reply(entry: Scripted) -> Reply:
    """Convert a script's entry to a reply."""
    return entry if isinstance(entry, Reply) else Reply(text=as_text(entry))


def as_text(value: Value | str) -> str:
    """Return a value as the JSON text that a model without faults would write."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True)
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"a script holds {type(value).__name__}, which is no JSON; use dicts, texts or pydantic values")


def fenced(value: Value | str, info: str = "json") -> Reply:
    """Return the JSON inside a code fence."""
    return Reply(text=f"```{info}\n{as_text(value)}\n```")


def thinking(value: Value | str, thought: str = 'maybe {"no": 1}?', *, closed: bool = True) -> Reply:
    """Return the answer after thoughts in a `<think>` tag. If `closed` is false, the tag is not closed."""
    return Reply(text=f"<think>\n{thought}\n{'</think>' if closed else ''}\n{as_text(value)}")


def prose(value: Value | str) -> Reply:
    """Return the JSON with ordinary sentences before and after it."""
    return Reply(text=f"Sure! Here is your answer:\n{as_text(value)}\nLet me know {{if}} anything is missing.")


def cut(value: Value | str) -> Reply:
    """Return half of the JSON, as if the server's token limit was reached."""
    text = as_text(value)
    return Reply(text=text[: max(1, len(text) // 2)], finish="length")


def wrong_types(value: Value) -> Reply:
    """Return an answer in which all fields have a wrong type (a nested object)."""
    fields = cast(dict[str, object], json.loads(as_text(value)))
    return Reply(text=json.dumps({name: {"wrong": {"type": True}} for name in fields}))


def empty() -> Reply:
    """Return an empty answer."""
    return Reply(text="")


def null_content() -> Reply:
    """Return a message whose content is null."""
    return Reply(message={"role": "assistant", "content": None})


def native_call(value: Value, name: str = "answer") -> Reply:
    """Return the answer as the arguments of a native tool call."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": as_text(value)}}
    return Reply(message={"role": "assistant", "content": None, "tool_calls": [call]}, finish="tool_calls")


def reasoned(value: Value | str, reasoning: str = "Let me see.") -> Reply:
    """Return the answer with separate reasoning, as reasoning models send it."""
    return Reply(message={"role": "assistant", "content": as_text(value), "reasoning_content": reasoning})


def refusal(text: str = "I cannot help with that.") -> Reply:
    """Return the model's refusal, in the message's `refusal` field."""
    return Reply(message={"role": "assistant", "content": None, "refusal": text})


def with_body(header: Value, body: str, info: str = "bash") -> Reply:
    """Return a JSON header, then the body in a fenced block. If the body ends with a line end, this line end is not
    doubled."""
    lines = body.removesuffix("\n")
    return Reply(text=f"{as_text(header)}\n```{info}\n{lines}\n```")


def too_many_requests(retry_after: str | int = 1) -> Reply:
    """Return HTTP 429. `retry_after` is a number of seconds or an HTTP date."""
    return Reply(status=429, error="rate limit reached", headers={"Retry-After": str(retry_after)})


def server_error(status: int = 500, error: str = "internal error") -> Reply:
    """Return an HTTP error. By default, it is the server's own error."""
    return Reply(status=status, error=error)


def stall(seconds: float = 30.0) -> Reply:
    """Send no answer, and close the connection after `seconds`."""
    return Reply(ending=Ending.STALL, delay=seconds)


def cut_connection(value: Value | str = "{}") -> Reply:
    """Break the connection in the middle of the body."""
    return Reply(text=as_text(value), ending=Ending.CUT)


def slow(entry: Scripted, seconds: float) -> Reply:
    """Return the same reply with a delay of `seconds`."""
    return replace(as_reply(entry), delay=seconds)
