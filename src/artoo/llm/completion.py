"""What a server's reply says, whichever server wrote it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from artoo.contracts.events import Usage
from artoo.llm.transport import Json, TransportReply

_OWN_REASONING = ("reasoning_items", "thinking_blocks")
"""Fields in which our wires keep thoughts that a server takes back as they were."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")

_MOST_TOKENS = 1e12
"""More is no count, and would be the end of any budget."""


class Called(NamedTuple):
    """A native tool call as it came: `arguments` is mostly the text of a JSON object."""

    id: str
    name: str
    arguments: Json


class Completion(NamedTuple):
    """One choice: its text, why it ended (`stop`, `length`, …), the model's name and the tokens.

    `refusal` is the model's own "no". `usage` is None when the server did not count; a part that it left out is 0.
    `thought` says that the model wrote down thoughts first: they take their share of the token limit. `thoughts`
    are those that stand beside the text. `text` is all that may hold an answer: the content with native tool calls
    below it, or else the thoughts; `content` and `calls` are apart. `reasoning` is what the server wants back.
    """

    text: str
    finish: str
    model: str
    usage: Usage | None
    refusal: str | None = None
    thought: bool = False
    thoughts: str = ""
    content: str = ""
    calls: tuple[Called, ...] = ()
    reasoning: Json = None


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
    content, calls = text, _calls(message)
    text = "\n".join(part for part in (text, *map(_call_of, calls)) if part and not part.isspace())
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
        content=content,
        calls=calls,
        reasoning=_reasoning(message),
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


def _calls(message: Mapping[str, Json]) -> tuple[Called, ...]:
    """The native tool calls, in the current form or in the one of old servers."""
    calls = message.get("tool_calls")
    listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    listed = listed or [{"function": message.get("function_call")}]
    found: list[Called] = []
    for call in listed:
        function = call.get("function")
        if not isinstance(function, dict):
            continue
        called = Called(_text(call.get("id")), _text(function.get("name")), function.get("arguments"))
        if called.name or called.arguments:
            found.append(called)
    return tuple(found)


def _call_of(call: Called) -> str:
    """A call's name and arguments as one object. Arguments that are cut off leave it cut off."""
    # Imported here: few servers are asked for answers that come as native calls.
    import json

    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    if not call.name:
        return text
    if not text.lstrip().startswith("{"):
        text = json.dumps(text, ensure_ascii=False) if text.strip() else "{}"
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {text}}}'


def _reasoning(message: Mapping[str, Json]) -> Json:
    """The fields of a message that hold thoughts, as they came."""
    names = _OWN_REASONING if any(message.get(name) for name in _OWN_REASONING) else _REASONING
    kept = {name: message[name] for name in names if message.get(name)}
    return cast("Json", kept) if kept else None


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
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    timings = body.get("timings")
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
