from __future__ import annotations

import pytest

from artoo.contracts.events import Usage
from artoo.llm.completion import error_of, status_of
from artoo.llm.transport import Json, TransportReply
from artoo.llm.wires import chat


def body(message: Json, **more: Json) -> TransportReply:
    return TransportReply(
        200, {}, {"choices": [{"message": message, "finish_reason": "stop"}], "model": "m", **more}
    )


@pytest.mark.parametrize(
    ("usage", "more", "expected"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            {},
            Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5},
            {},
            Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=5),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2},
            {"timings": {"cache_n": 7}},
            Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=7),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None},
            {},
            Usage(prompt_tokens=3),
        ),
        ({"input_tokens": 9, "output_tokens": 2}, {}, Usage(prompt_tokens=9, completion_tokens=2)),
        ({"prompt_tokens": 9.0, "completion_tokens": 2.0}, {}, Usage(prompt_tokens=9, completion_tokens=2)),
        ({"prompt_tokens": 1e300, "completion_tokens": True}, {}, None),
        ({}, {}, None),
        (None, {}, None),
    ],
)
def test_token_counts_of_different_servers(usage: Json, more: dict[str, Json], expected: Usage | None):
    """Cached tokens are found where each server puts them; no counts at all is None."""
    completion = chat.WIRE.read(body({"content": "x"}, usage=usage, **more)).completion
    assert completion is not None
    assert completion.usage == expected


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ({"name": "shell", "arguments": '{"command": "ls"}'}, '{"name": "shell", "arguments": {"command": "ls"}}'),
        ({"name": "shell", "arguments": {"command": "ls"}}, '{"name": "shell", "arguments": {"command": "ls"}}'),
        ({"name": "shell", "arguments": '{"comm'}, '{"name": "shell", "arguments": {"comm}'),
        ({"name": "shell", "arguments": "ls"}, '{"name": "shell", "arguments": "ls"}'),
        ({"name": "now", "arguments": ""}, '{"name": "now", "arguments": {}}'),
        ({"arguments": '{"tool": "shell"}'}, '{"tool": "shell"}'),
        ({}, ""),
    ],
)
def test_a_native_call_keeps_its_name(function: Json, text: str):
    """The name says which tool is called: without it the arguments are anybody's."""
    completion = chat.WIRE.read(body({"tool_calls": [{"type": "function", "function": function}]})).completion
    assert completion is not None and completion.text == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"error": {"message": "bad key"}}, "bad key"),
        ({"error": "model not found"}, "model not found"),
        ({"detail": [{"msg": "field required"}, {"msg": "and more"}]}, "field required; and more"),
        ({"message": "a\n  b"}, "a b"),
        ("plain", "plain"),
        ({}, "no explanation (HTTP 400)"),
    ],
)
def test_errors_of_different_servers(given: Json, text: str):
    """Each server's shape of error yields its words, on one line."""
    assert error_of(TransportReply(400, {}, given)) == text


def test_status_inside_a_200():
    """A gateway that answers 200 with an error inside is read as that error."""
    assert status_of(TransportReply(200, {}, {"error": {"code": 403}})) == 403
    assert status_of(TransportReply(200, {}, {"error": {"code": "x"}})) == 502
    assert status_of(body({"content": "x"}, error={"code": 403})) == 200
