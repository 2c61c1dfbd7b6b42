"""Conversations and questions over the three wires, against the types of the vendors' SDKs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import cast

import orjson
import pytest
from aiohttp import web

from artoo.contracts.conversation import ModelTurn, Returned, Said, Took, ToolRequest
from artoo.contracts.request import AttachedImage
from artoo.llm.wires.how import Reasoning
from llm.asking import STEP, question
from llm.conversing import answered, conversation
from llm.vendors import CHAT, MESSAGES, RESPONSES, VENDORS, Event, Vendor, playing, refused

LS = ("call_a", "shell", '{"command": "ls"}')
READ = ("call_b", "read_file", '{"path": "a.txt"}')


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)
async def test_a_conversation(vendor: Vendor) -> None:
    """Words are heard, parallel calls are read, results go back with their ids, and tokens are counted."""
    first = vendor.stream(vendor.events("I look.", [LS, READ], False))
    second = vendor.stream(vendor.events("Two files.", [], False))
    heard: list[str] = []
    async with playing(vendor, first, second) as (model, played):
        begun = conversation()
        one = await model.converse(begun, heard.append)
        two = await model.converse(answered(begun, one, "[1] a.txt", "[2] x"))
    assert one.turn.text == "".join(heard) == "I look." and len(heard) == 2
    assert [(call.id, call.name, call.arguments) for call in one.turn.calls] == [
        ("call_a", "shell", {"command": "ls"}),
        ("call_b", "read_file", {"path": "a.txt"}),
    ]
    assert (two.turn.text, two.turn.calls, two.wire, two.native) == ("Two files.", (), vendor.wire, True)
    assert (one.usage.prompt_tokens, one.usage.completion_tokens, one.usage.cached_tokens) == (100, 10, 80)
    assert played.asked[0]["stream"] is True and b"[1] a.txt" in orjson.dumps(played.asked[1])


async def test_responses_stores_nothing_and_keeps_thoughts() -> None:
    """Encrypted reasoning goes back before the call that it led to."""
    stream = RESPONSES.stream(RESPONSES.events("", [LS], False))
    async with playing(RESPONSES, stream) as (model, played):
        begun = conversation()
        one = await model.converse(begun)
        await model.converse(answered(begun, one, "[1] a.txt"))
    first, second = played.asked
    assert first["store"] is False and first["include"] == ["reasoning.encrypted_content"]
    assert first["prompt_cache_key"] == "task-1"
    assert [item.get("type") for item in second["input"][1:]] == [
        "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert second["input"][1]["encrypted_content"] == "sealed"


async def test_messages_marks_the_cache_and_keeps_thoughts() -> None:
    """Marks stand at the end of tools, system prompt and newest messages; thoughts go back with their signature."""
    stream = MESSAGES.stream(MESSAGES.events("", [LS], False))
    async with playing(MESSAGES, stream) as (model, played):
        begun = conversation()
        one = await model.converse(begun)
        await model.converse(answered(begun, one, "[1] a.txt"))
    second = played.asked[1]
    for body in played.asked:
        assert "cache_control" in body["tools"][-1] and "cache_control" in body["system"][-1]
        assert "cache_control" in body["messages"][-1]["content"][-1]
        assert orjson.dumps(body).count(b"cache_control") <= 4
    assert second["messages"][1]["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "sealed"}
    assert second["messages"][2]["content"][0]["tool_use_id"] == "call_a"
    assert played.headers[0]["x-api-key"] == "sk-secret" and "anthropic-version" in played.headers[0]


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)
@pytest.mark.parametrize("reasoning", ["off", "low", "high"])
async def test_reasoning_is_asked_for(vendor: Vendor, reasoning: Reasoning) -> None:
    """Each wire has its own field for it."""
    stream = vendor.stream(vendor.events("Done.", [], False))
    async with playing(vendor, stream, reasoning=reasoning) as (model, played):
        await model.converse(conversation())
    (body,) = played.asked
    effort = "none" if reasoning == "off" else reasoning
    if vendor is CHAT:
        assert body["reasoning_effort"] == effort
    elif vendor is RESPONSES:
        assert body["reasoning"] == {"effort": effort}
    elif reasoning == "off":
        assert body["thinking"] == {"type": "disabled"}
    else:
        assert body["thinking"] == {"type": "adaptive"} and body["output_config"] == {"effort": reasoning}


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)
async def test_a_question_is_asked_in_ever_weaker_forms(vendor: Vendor) -> None:
    """JSON schema, a forced call, a JSON object, words: each form is valid, and the last one is remembered."""
    good = vendor.stream(vendor.events(orjson.dumps(STEP).decode(), [], False))
    weak = 3 if vendor is not MESSAGES else 2

    def answer(body: Event) -> web.Response | bytes:
        plain = not {"response_format", "tool_choice", "text", "output_config"} & body.keys()
        return good if plain else refused("it is not known here")

    async with playing(vendor, answer) as (model, played):
        first = await model.ask(question())
        before = len(played.asked)
        assert (await model.ask(question())).requests == 1
    assert first.value.command == "ls" and first.wire == "prompted" and before >= weak


IMAGE = AttachedImage(name="a.png", media_type="image/png", size=3, sha256="0" * 64)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)
async def test_images_of_people_and_of_tools_are_shown(vendor: Vendor) -> None:
    """In the request, and in what a tool returned."""
    took = Took(turn=ModelTurn(calls=(ToolRequest(id="call_a", name="read_file", arguments={"path": "a.png"}),)))
    back = Returned(call_id="call_a", name="read_file", text="[1] a.png", images=(IMAGE,))
    begun = conversation(Said(text="Look.", images=(IMAGE,)), took, back)
    url = "data:image/png;base64,AAAA"
    begun = replace(begun, pictures={IMAGE.sha256: url})
    async with playing(vendor, vendor.stream(vendor.events("A cat.", [], False))) as (model, played):
        await model.converse(begun)
    assert orjson.dumps(played.asked[0]).count(b"AAAA") == 2


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.wire)
async def test_a_prompt_is_a_prefix_of_the_next(vendor: Vendor) -> None:
    """At least 95 % of a request's prompt are, byte for byte, the beginning of the next one (cache marks apart)."""
    steps = [
        vendor.stream(vendor.events("", [(f"call_{at}", "shell", '{"command": "ls"}')], False)) for at in range(9)
    ]
    async with playing(vendor, *steps) as (model, played):
        current = conversation()
        for at in range(9):
            spoken = await model.converse(current)
            current = answered(current, spoken, f"[{at + 1}] " + "a line of output\n" * 40)
    prompts = [_prompt(vendor, body) for body in played.asked]
    shares = [_shared(one, other) / len(one) for one, other in pairwise(prompts)]
    assert min(shares) >= 0.95, shares


async def test_the_text_dialect_grows_at_its_end_too() -> None:
    """What a model wrote, and what tools returned, is rendered in the same way in every turn."""
    step = 'I look.\n{"tool": "shell", "is_final": false}\n```bash\nls\n```'
    steps = [CHAT.stream(CHAT.events(step, [], False))] * 6
    async with playing(CHAT, *steps, wire="text") as (model, played):
        current = conversation()
        for at in range(6):
            spoken = await model.converse(current)
            assert not spoken.native
            current = answered(current, spoken, f"[{at + 1}] " + "a line of output\n" * 40)
    prompts = [_prompt(CHAT, body) for body in played.asked]
    shares = [_shared(one, other) / len(one) for one, other in pairwise(prompts)]
    assert min(shares) >= 0.95, shares


def _prompt(vendor: Vendor, body: Event) -> bytes:
    """What the server's cache sees: tools, system prompt and messages, without marks and the closing bracket."""
    fields = ("tools", "instructions", "input") if vendor is RESPONSES else ("tools", "system", "messages")
    parts = [orjson.dumps(_unmarked(body.get(name))) for name in fields]
    return b"".join(parts).removesuffix(b"]")


def _unmarked(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: _unmarked(each) for name, each in fields.items() if name != "cache_control"}
    return [_unmarked(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def _shared(one: bytes, other: bytes) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
