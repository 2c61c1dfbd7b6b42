"""What goes wrong with model servers, on all three wires: a right result, or one clear error.

Every case is played by a real HTTP server, whose streams are made of the SDKs' types, and every request is checked
against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import orjson
import pytest
from aiohttp import web

from artoo.contracts.errors import ContextOverflow, ModelAnswerInvalid, ModelRefused, ModelUnreachable
from llm.conversing import conversation
from llm.vendors import CHAT, MESSAGES, RESPONSES, VENDORS, Event, Vendor, playing, refused

LS = ("call_a", "shell", '{"command": "ls"}')
Reply = web.Response | bytes | Callable[[Event], web.Response | bytes]

wires = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)


def good(vendor: Vendor) -> bytes:
    return vendor.stream(vendor.events("All done.", [], False))


def calling(vendor: Vendor) -> bytes:
    return vendor.stream(vendor.events("I look.", [LS], False))


async def turn(vendor: Vendor, *replies: Reply) -> tuple[str, int]:
    """What a conversation hears in the end, and how many requests it took. It is heard once."""
    heard: list[str] = []
    async with playing(vendor, *replies) as (model, played):
        spoken = await model.converse(conversation(), heard.append)
        assert "".join(heard) == spoken.turn.text
        again = await model.converse(conversation())
        assert again.requests <= 2, "what was found out is remembered"
        return spoken.turn.text, spoken.requests if len(played.asked) else 0


# ---- streams that break ----


@wires
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
async def test_a_stream_that_is_cut_is_asked_for_again(vendor: Vendor, kept: float) -> None:
    """Its words are not said twice, and its calls are made once."""
    whole = calling(vendor)
    heard: list[str] = []
    async with playing(vendor, whole[: int(len(whole) * kept)], whole) as (model, _):
        spoken = await model.converse(conversation(), heard.append)
    assert (spoken.requests, len(spoken.turn.calls), "".join(heard)) == (2, 1, "I look.")


@wires
async def test_an_error_in_the_middle_is_tried_again(vendor: Vendor) -> None:
    """An event of an error ends a stream."""
    broken = vendor.stream([*vendor.events("All", [], False)[:2], vendor.error], end=False)
    assert await turn(vendor, broken, good(vendor)) == ("All done.", 2)


@wires
@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "", "application/x-ndjson"])
async def test_a_stream_is_read_by_what_is_in_it(vendor: Vendor, content_type: str) -> None:
    """Under any type, and as lines of JSON."""
    body = good(vendor)
    if content_type == "application/x-ndjson":
        body = b"\n".join(orjson.dumps(event) for event in vendor.events("All done.", [], False))
    reply = web.Response(body=body, headers={"Content-Type": content_type} if content_type else {})
    assert (await turn(vendor, reply))[0] == "All done."


@wires
async def test_a_page_is_no_answer(vendor: Vendor) -> None:
    """A proxy's page is asked about again, then named."""
    page = web.Response(text="<html>log in</html>", content_type="text/html")
    assert await turn(vendor, page, good(vendor)) == ("All done.", 2)
    async with playing(vendor, page) as (model, _):
        with pytest.raises(ModelUnreachable, match=r"text/html.*log in"):
            await model.converse(conversation())


# ---- odd answers ----


@wires
async def test_half_a_call_is_not_made(vendor: Vendor) -> None:
    """Arguments that reached the limit come back as a problem."""
    half = ("call_a", "shell", '{"command": "rm -r')
    async with playing(vendor, vendor.stream(vendor.events("", [half], True))) as (model, _):
        (call,) = (await model.converse(conversation())).turn.calls
    assert call.arguments == {} and call.problem


@wires
async def test_an_empty_answer_is_asked_for_once_more(vendor: Vendor) -> None:
    """Nothing, twice, is an error."""
    nothing = vendor.stream(vendor.events("", [], False))
    assert (await turn(vendor, nothing, good(vendor)))[0] == "All done."
    async with playing(vendor, nothing) as (model, played):
        with pytest.raises(ModelAnswerInvalid):
            await model.converse(conversation())
        assert len(played.asked) == 2


@wires
async def test_calls_with_the_same_id_are_two(vendor: Vendor) -> None:
    """Each gets an id of its own."""
    stream = vendor.stream(vendor.events("", [LS, ("call_a", "read_file", '{"path": "a"}')], False))
    async with playing(vendor, stream) as (model, _):
        calls = (await model.converse(conversation())).turn.calls
    if vendor is CHAT:  # one index and one id would be one call
        assert [call.name for call in calls] == ["shell", "read_file"]
    assert len({call.id for call in calls}) == len(calls) == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": ""}]},
        {"id": "", "object": "", "created": 0, "prompt_filter_results": []},
    ],
    ids=["no choices", "null choices", "null delta", "null content", "empty finish", "no fields"],
)
async def test_empty_pieces_say_nothing(odd: Event) -> None:
    """Between the others, before and after them."""
    events = CHAT.events("All done.", [], False)
    assert (await turn(CHAT, CHAT.stream([odd, *events[:2], odd, *events[2:], odd])))[0] == "All done."


# ---- refusals, in whatever words ----

WORDS = ["Unsupported value", "es geht nicht", "エラー", "Extra inputs are not permitted", ""]


def demanding(vendor: Vendor, accepts: Callable[[Event], bool], words: str) -> Reply:
    """A server that answers only what it accepts, and says the same of all else."""
    return lambda body: good(vendor) if accepts(body) else refused(words)


def _roles(body: Event) -> list[str]:
    return [str(message["role"]) for message in body["messages"]]


DEMANDS: Sequence[tuple[Vendor, str, Callable[[Event], bool]]] = [
    (CHAT, "temperature", lambda body: "temperature" not in body),
    (CHAT, "stream options", lambda body: "stream_options" not in body),
    (CHAT, "system role", lambda body: "system" not in _roles(body)),
    (CHAT, "max_tokens", lambda body: "max_tokens" not in body),
    (CHAT, "any limit", lambda body: not {"max_tokens", "max_completion_tokens"} & body.keys()),
    (CHAT, "tools", lambda body: "tools" not in body),
    (CHAT, "streams", lambda body: "stream" not in body),
    (CHAT, "temperature and tools", lambda body: not {"temperature", "tools"} & body.keys()),
    (CHAT, "temperature and system", lambda body: "temperature" not in body and "system" not in _roles(body)),
    (RESPONSES, "temperature", lambda body: "temperature" not in body),
    (RESPONSES, "encrypted thoughts", lambda body: "include" not in body),
    (RESPONSES, "cache key", lambda body: "prompt_cache_key" not in body),
    (RESPONSES, "instructions", lambda body: "instructions" not in body),
    (RESPONSES, "limit", lambda body: "max_output_tokens" not in body),
    (RESPONSES, "tools", lambda body: "tools" not in body),
    (MESSAGES, "cache marks", lambda body: "cache_control" not in str(body)),
    (MESSAGES, "system", lambda body: "system" not in body),
    (MESSAGES, "tools", lambda body: "tools" not in body),
]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(
    ("vendor", "what", "accepts"), DEMANDS, ids=[f"{each[0].wire} {each[1]}" for each in DEMANDS]
)
async def test_what_a_server_refuses_is_left_out(
    vendor: Vendor, what: str, accepts: Callable[[Event], bool], words: str
) -> None:
    """Whatever it says of it; after a few questions it is known exactly, and nothing else is left out."""
    async with playing(vendor, demanding(vendor, accepts, words)) as (model, played):
        for _ in range(4):
            assert (await model.converse(conversation())).turn.text == "All done."
        settled = len(played.asked)
        assert (await model.converse(conversation())).requests == 1
    last = played.asked[settled]
    wanted = {"temperature", "tools", "stream"} & played.asked[0].keys()
    assert accepts(last) and settled <= 30
    for name in wanted - last.keys():
        assert name in what or (name == "tools" and "tools" in what) or (name == "stream" and "streams" in what)


@wires
async def test_what_is_refused_in_every_form_is_one_error(vendor: Vendor) -> None:
    """With the server's first words, after a bounded number of requests."""

    def answer(body: Event) -> web.Response:
        return refused("my own words")

    async with playing(vendor, answer) as (model, played):
        with pytest.raises(ModelRefused, match="my own words") as caught:
            await model.converse(conversation())
        assert caught.value.status == 400 and len(played.asked) <= 14


# ---- prompts that are too long ----

LONG = "word " * 4_000  # about 5,000 tokens

OVERFLOWS: Mapping[str, Event] = {
    "code": {"message": "no", "code": "context_length_exceeded"},
    "Anthropic": {"message": "prompt is too long: 5208 tokens > 4096 maximum"},
    "vLLM": {"message": "This model's maximum context length is 4096 tokens. However, you requested 6105 tokens "
     "(5105 in the messages, 1000 in the completion)."},
    "llama.cpp": {"message": "too much", "type": "exceed_context_size_error", "n_ctx": 4_096},
    "Chinese": {"message": "输入长度 5103 超过最大长度 4096"},
    "a feature's name": {"message": "The text and its max_tokens are more than this system takes."},
    "nothing": {},
}  # fmt: skip


@wires
@pytest.mark.parametrize("error", OVERFLOWS.values(), ids=OVERFLOWS)
async def test_a_prompt_that_is_too_long_is_named_as_that(vendor: Vendor, error: Event) -> None:
    """By its code, or because half of it is answered."""

    def answer(body: Event) -> web.Response | bytes:
        return good(vendor) if len(orjson.dumps(body)) < 15_000 else web.json_response({"error": error}, status=400)

    async with playing(vendor, answer) as (model, played):
        assert (await model.converse(conversation())).turn.text == "All done."
        with pytest.raises(ContextOverflow, match="larger context"):
            await model.converse(conversation(text=LONG))
        assert len(played.asked) <= (14 if "system" in str(error) else 4)
        assert (await model.converse(conversation())).native


@wires
async def test_a_long_answer_that_does_not_fit_is_asked_for_shorter(vendor: Vendor) -> None:
    """The prompt fits, and no feature is named: only the limit of the answer was too high."""

    def answer(body: Event) -> web.Response | bytes:
        limit = next(body[name] for name in ("max_tokens", "max_output_tokens") if name in body)
        return good(vendor) if limit <= 4_096 else refused("too much is wanted")

    async with playing(vendor, answer) as (model, _):
        spoken = await model.converse(replace(conversation(text=LONG), max_tokens=8_000))
        assert (spoken.turn.text, spoken.requests) == ("All done.", 2)


async def test_a_server_without_the_path_is_asked_on_another_wire() -> None:
    """`wire: auto` goes by what the server answers, once."""
    async with playing(MESSAGES, good(MESSAGES), wire="auto") as (model, played):
        spoken = await model.converse(conversation())
        assert (spoken.wire, (await model.converse(conversation())).requests) == ("messages", 1)
    assert len(played.asked) == 2
