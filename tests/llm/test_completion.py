from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    "reply",
    [
        TransportReply(200, {}, None, "<html>"),
        TransportReply(200, {}, []),
        TransportReply(200, {}, {}),
        TransportReply(200, {}, {"choices": []}),
        TransportReply(200, {}, {"choices": ["x"]}),
        TransportReply(200, {}, {"choices": None}),
    ],
)
def test_what_is_no_completion(reply: TransportReply):
    """A 200 without a choice is no answer."""
    assert chat.WIRE.read(reply).completion is None


@pytest.mark.parametrize("message", [None, {}, {"content": None}, {"content": 3}, {"content": [{"type": "image"}]}])
def test_odd_messages_are_empty_answers(message: Json):
    """A choice without text reads as an empty answer, which can be repaired."""
    completion = chat.WIRE.read(body(message)).completion
    assert completion is not None
    assert completion.text == ""


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


def test_content_filter_is_a_refusal():
    """An answer that the server's filter took away is a refusal with that reason."""
    reply = TransportReply(200, {}, {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]})
    completion = chat.WIRE.read(reply).completion
    assert completion is not None
    assert completion.declined == "the server's content filter removed the answer"


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


def test_long_error_pages_are_cut():
    """A whole HTML page does not become an error message."""
    assert len(error_of(TransportReply(502, {}, None, "<p>" * 1_000))) == 500


def test_status_inside_a_200():
    """A gateway that answers 200 with an error inside is read as that error."""
    assert status_of(TransportReply(200, {}, {"error": {"code": 403}})) == 403
    assert status_of(TransportReply(200, {}, {"error": {"code": "x"}})) == 502
    assert status_of(body({"content": "x"}, error={"code": 403})) == 200


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "error", "code", "usage", "tool_calls", "function", "arguments"]
            ),
            parts,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(JSON_VALUES, st.sampled_from([200, 400, 503]))
@settings(max_examples=200, deadline=None)
def test_any_body_can_be_looked_at(given_body: Json, status: int):
    """No JSON that a server may send makes the reading of replies fail."""
    reply = TransportReply(status, {}, given_body)
    assert isinstance(error_of(reply), str)
    assert 200 <= status_of(reply) < 600
    chat.WIRE.read(reply)
