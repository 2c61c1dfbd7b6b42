"""What a server's reply says, whichever server wrote it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from artoo.contracts.events import Usage
from artoo.llm.transport import Json, TransportReply

_MOST_TOKENS = 1e12
"""More is no count, and would be the end of any budget."""


class Completion(NamedTuple):
    """One choice: its text, why it ended (`stop`, `length`, …), the model's name and the tokens.

    `refusal` is the model's own "no". `usage` is None when the server did not count; a part that it left out is 0.
    `thought` says that the model wrote down thoughts first: they take their share of the token limit. `thoughts`
    are those that stand beside the text.
    """

    text: str
    finish: str
    model: str
    usage: Usage | None
    refusal: str | None = None
    thought: bool = False
    thoughts: str = ""


def completion_of(reply: TransportReply) -> Completion | None:
    """The first choice of a 200 reply; None when the body is no chat completion.

    The text is the content, with native tool calls below it; without both, the reasoning.
    """
    body = reply.body
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    found = choice.get("message")
    message = found if isinstance(found, dict) else {}
    finish = choice.get("finish_reason")
    said, refused = message.get("content"), message.get("refusal")
    text = said if isinstance(said, str) else _text(said)
    refusal = _text(refused).strip() if refused else ""
    reasoned = message.get("reasoning_content") or message.get("reasoning")
    thoughts = _text(reasoned) if reasoned else ""
    thought = bool(thoughts.strip()) or "<think" in text
    text = "\n".join(part for part in (text, _arguments(message)) if part and not part.isspace())
    if not text:
        text, thoughts = thoughts, ""
    if not text.strip() and finish == "content_filter":
        refusal = refusal or "the server's content filter removed the answer"
    return Completion(
        text=text,
        finish=finish if isinstance(finish, str) else "",
        model=_text(body.get("model")),
        usage=_usage(body),
        refusal=refusal or None,
        thought=thought,
        thoughts=thoughts,
    )


def is_completion(reply: TransportReply) -> bool:
    """True when the body has a first choice, so that `completion_of` reads it."""
    choices = reply.body.get("choices") if isinstance(reply.body, dict) else None
    return isinstance(choices, list) and bool(choices) and isinstance(choices[0], dict)


def error_of(reply: TransportReply) -> str:
    """The server's explanation of an error, at most 500 characters, whatever shape it has."""
    text = _error_text(reply.body) or reply.text or f"no explanation (HTTP {reply.status})"
    return " ".join(text.split())[:500]


def kind_of(reply: TransportReply) -> str:
    """What the server calls what it sent, for a person."""
    return reply.headers.get("content-type", "").strip()[:100] or "an answer without a content type"


def status_of(reply: TransportReply) -> int:
    """The HTTP status, or the one that a gateway hid in the body of a 200 (`{"error": {"code": 429}}`)."""
    body = reply.body
    if reply.status != 200 or not isinstance(body, dict) or "choices" in body or not body.get("error"):
        return reply.status
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def error_code(reply: TransportReply) -> str:
    """The server's machine-readable error code or type, such as `insufficient_quota`; "" when there is none."""
    error = reply.body.get("error") if isinstance(reply.body, dict) else None
    if not isinstance(error, dict):
        return ""
    return _text(error.get("code")) or _text(error.get("type"))


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


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in value)
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _arguments(message: Mapping[str, Json]) -> str:
    """Native tool calls, one below the other: who reads them may count them."""
    calls = message.get("tool_calls")
    named = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    given = (_call_of(function) for function in named or [message.get("function_call")])
    return "\n".join(filter(None, given))


def _call_of(function: Json) -> str:
    """A call's name and arguments as one object. Arguments that are cut off leave it cut off."""
    if not isinstance(function, dict):
        return ""
    name, arguments = function.get("name"), function.get("arguments")
    if not arguments and not name:
        return ""
    # Imported here: few servers are asked for answers that come as native calls.
    import json

    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    if not isinstance(name, str) or not name:
        return text
    if not text.lstrip().startswith("{"):
        text = json.dumps(text, ensure_ascii=False) if text.strip() else "{}"
    return f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {text}}}'


def _usage(body: Mapping[str, Json]) -> Usage | None:
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    cached = _cached(usage, body)
    # Some gateways pass on the names of another interface of the same vendor.
    prompt = _count(usage.get("prompt_tokens")) or _count(usage.get("input_tokens"))
    completion = _count(usage.get("completion_tokens")) or _count(usage.get("output_tokens"))
    if not prompt and not completion:
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=min(cached, prompt),
    )


def _cached(usage: Mapping[str, Json], body: Mapping[str, Json]) -> int:
    """Prompt tokens from the server's cache: OpenAI's, DeepSeek's or llama.cpp's way to say it."""
    details, timings = usage.get("prompt_tokens_details"), body.get("timings")
    return (
        (_count(details.get("cached_tokens")) if isinstance(details, dict) else 0)
        or _count(usage.get("prompt_cache_hit_tokens"))
        or (_count(timings.get("cache_n")) if isinstance(timings, dict) else 0)
    )


def _count(value: Json) -> int:
    """A count; 0 for what is none. Some servers write whole numbers as 12.0."""
    if (type(value) is int or type(value) is float) and 0 < value < _MOST_TOKENS:
        return int(value)
    return 0
