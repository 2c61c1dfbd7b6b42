"""Parse a server's reply and its HTTP status, error text and error code, for any wire.

The functions are pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from artoo.contracts.events import Usage
from artoo.llm.transport import Json, TransportReply

# A larger number cannot be a count of tokens, and would use up any budget.
_MOST_TOKENS = 1e12


class Called(NamedTuple):
    """A native tool call in the form in which it was received. `arguments` is usually a text with a JSON object."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model, whatever the wire was. It has the content, the native tool calls, and the thoughts.

    `finish`: the reason why it ended (`stop`, `length`, …). `refusal`: the text in which the model refuses to
    answer. `usage` is None if the server did not count tokens. A single count that is missing is 0. `reasoning`:
    data that must be sent back to the server in the next turn.
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
        """Return all text in which the answer may be. It is the content with the calls after it, or else the
        thoughts."""
        parts = (self.content, *map(_written, self.calls)) if self.calls else (self.content,)
        return "\n".join(part for part in parts if part and not part.isspace()) or self.thoughts

    @property
    def thought(self) -> bool:
        """Return whether the model wrote thoughts before its answer. Thoughts count for the token limit."""
        return bool(self.thoughts.strip()) or "<think" in self.content

    @property
    def declined(self) -> str:
        """Return why the model or a filter of the server refused to answer. Return "" if there is an answer."""
        filtered = self.finish == "content_filter" and not self.text.strip()
        return self.refusal or ("the server's content filter removed the answer" if filtered else "")


def error_of(reply: TransportReply) -> str:
    """Return the explanation of an error by the server, whatever its format is, in at most 500 characters."""
    text = _error_text(reply.body) or reply.text or f"no explanation (HTTP {reply.status})"
    return " ".join(text.split())[:500]


def kind_of(reply: TransportReply) -> str:
    """Return the content type of a reply, for a message to the user."""
    return reply.headers.get("content-type", "").strip()[:100] or "an answer without a content type"


def status_of(reply: TransportReply) -> int:
    """Return the HTTP status. If a gateway has put another status into the body of a reply with status 200
    (`{"error": {"code": 429}}`), return that one."""
    body = reply.body
    if reply.status != 200 or not isinstance(body, dict) or "choices" in body or not body.get("error"):
        return reply.status
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def error_code(reply: TransportReply) -> str:
    """Return the server's error code or type for machines, such as `insufficient_quota`. Return "" if there is
    none.
    """
    error = reply.body.get("error") if isinstance(reply.body, dict) else None
    if not isinstance(error, dict):
        return ""
    return text_of(error.get("code")) or text_of(error.get("type"))


def text_of(value: Json) -> str:
    """Return a text that is given as a string or as a list of parts. Return "" for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in value)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def count_of(value: Json) -> int:
    """Return a count of tokens. Return 0 for any other value. Some servers write whole numbers in the form 12.0."""
    if (type(value) is int or type(value) is float) and 0 < value < _MOST_TOKENS:
        return int(value)
    return 0


def usage_of(prompt: int, completion: int, cached: int) -> Usage | None:
    """Return the tokens that a server has counted. Return None if it has counted none. The tokens of the prompt
    include the cached ones."""
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
    """Write the name and the arguments of a call as one JSON object. If the arguments are incomplete, the object is
    incomplete too."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    if not call.name:
        return text
    if not text.lstrip().startswith("{"):
        text = json.dumps(text, ensure_ascii=False) if text.strip() else "{}"
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {text}}}'
