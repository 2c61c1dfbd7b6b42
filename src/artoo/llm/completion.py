"""Parse a server's reply and its HTTP status, error text and error code, for any wire.

This module is pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from artoo.contracts.events import Usage
from artoo.llm.transport import Json, TransportReply

# A larger number cannot be a token count, and would exhaust any budget.
_MOST_TOKENS = 1e12


class Called(NamedTuple):
    """A native tool call as received. `arguments` is usually the text of a JSON object."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model, from any wire: its content, its native tool calls, and its thoughts.

    `finish`: the reason for its end (`stop`, `length`, …). `refusal`: the model's refusal to answer. `usage` is
    None if the server did not count; missing counts are 0. `reasoning`: data that the server wants back in the next
    turn.
    """

    content: str = ""
    calls: tuple[Called, ...] = ()
    thoughts: str = ""
    finish: str = ""
    model: str = ""
    usage: Usage | None = None
    refusal: str = ""
    reasoning: Json = None

    @property
    def text(self) -> str:
        """Return all text that may hold an answer: the content and the calls below it, otherwise the thoughts."""
        parts = (self.content, *map(_written, self.calls)) if self.calls else (self.content,)
        return "\n".join(part for part in parts if part and not part.isspace()) or self.thoughts

    @property
    def thought(self) -> bool:
        """Return whether the model wrote thoughts first. They count against the token limit."""
        return bool(self.thoughts.strip()) or "<think" in self.content

    @property
    def declined(self) -> str:
        """Return why the model or a filter of the server refused to answer; "" if there is an answer."""
        filtered = self.finish == "content_filter" and not self.text.strip()
        return self.refusal or ("the server's content filter removed the answer" if filtered else "")


def error_of(reply: TransportReply) -> str:
    """Return the server's explanation of an error in any format, at most 500 characters."""
    text = _error_text(reply.body) or reply.text or f"no explanation (HTTP {reply.status})"
    return " ".join(text.split())[:500]


def kind_of(reply: TransportReply) -> str:
    """Return the content type of a reply, for a message to the user."""
    return reply.headers.get("content-type", "").strip()[:100] or "an answer without a content type"


def status_of(reply: TransportReply) -> int:
    """Return the HTTP status, or the one that a gateway put into a 200's body (`{"error": {"code": 429}}`)."""
    body = reply.body
    if reply.status != 200 or not isinstance(body, dict) or "choices" in body or not body.get("error"):
        return reply.status
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def error_code(reply: TransportReply) -> str:
    """Return the server's machine-readable error code or type, such as `insufficient_quota`; "" if there is
    none.
    """
    error = reply.body.get("error") if isinstance(reply.body, dict) else None
    if not isinstance(error, dict):
        return ""
    return text_of(error.get("code")) or text_of(error.get("type"))


def text_of(value: Json) -> str:
    """Return a text that is given as a string or as a list of parts; "" for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in value)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def count_of(value: Json) -> int:
    """Return a token count; 0 for any other value. Some servers write whole numbers as 12.0."""
    if (type(value) is int or type(value) is float) and 0 < value < _MOST_TOKENS:
        return int(value)
    return 0


def usage_of(prompt: int, completion: int, cached: int) -> Usage | None:
    """Return the tokens that a server counted; None if it counted none. The prompt includes the cached tokens."""
    if not prompt and not completion:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=min(cached, prompt))


def _error_text(body: Json) -> str:
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, (_error_text(item) for item in body)))
    if not isinstance(body, dict):
        return ""
    for key in ("error", "message", "detail", "msg", "error_msg"):
        text = _error_text(body.get(key))
        if text:
            return text
    return ""


def _written(call: Called) -> str:
    """Write a call's name and arguments as one JSON object. If the arguments are incomplete, so is the object."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    if not call.name:
        return text
    if not text.lstrip().startswith("{"):
        text = json.dumps(text, ensure_ascii=False) if text.strip() else "{}"
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {text}}}'
