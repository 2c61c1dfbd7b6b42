from __future__ import annotations

import asyncio
from typing import cast

import pytest

from artoo.contracts.errors import ModelAnswerInvalid, ModelRefused
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.llm.retry import RetryPolicy
from artoo.llm.transport import Json, TransportReply
from artoo.testing import (
    Asked,
    FakeClock,
    Reply,
    ScriptedServer,
    cut,
    cut_connection,
    empty,
    fenced,
    native_call,
    null_content,
    prose,
    reasoned,
    refusal,
    server_error,
    slow,
    stall,
    thinking,
    too_many_requests,
    wrong_types,
)

from .asking import STEP, Step, client_of, question


@pytest.mark.parametrize(
    "reply",
    [
        STEP,
        Step(tool="shell", command="ls"),
        '{"tool": "shell", "command": "ls"}',
        fenced(STEP),
        thinking(STEP),
        thinking(STEP, closed=False),
        prose(STEP),
        native_call(STEP),
        reasoned(STEP),
        slow(STEP, 0.05),
        Reply(message={"content": [{"type": "text", "text": '{"tool": "shell", "command": "ls"}'}]}),
        Reply(message={"content": None, "reasoning_content": '{"tool": "shell", "command": "ls"}'}),
        Reply(message={"content": "", "function_call": {"name": "x", "arguments": STEP}}),
    ],
)
async def test_reads_every_way_of_answering(reply: Reply | dict[str, str] | str):
    """Clean or wrapped, one request is enough for an answer that is there."""
    async with ScriptedServer({"Step": [reply]}) as server, client_of(server) as model:
        answer = await model.ask(question())
    assert answer.value == Step(tool="shell", command="ls")
    assert (answer.requests, answer.repaired, answer.wire) == (1, False, "json_schema")
    assert answer.usage.prompt_tokens > 0
    assert answer.model == "scripted"


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (cut(STEP), "cut off"),
        (wrong_types(STEP), "tool: "),
        (empty(), "empty"),
        (null_content(), "empty"),
        ("I would run ls.", "no JSON object"),
    ],
)
async def test_one_repair_with_the_reason(bad: Reply | str, named: str):
    """A bad answer is asked for again once, in the same conversation, with what was wrong."""
    async with ScriptedServer({"Step": [bad, STEP]}) as server, client_of(server) as model:
        answer = await model.ask(question())
    first, second = server.player.requests
    assert (answer.value.tool, answer.requests, answer.repaired) == ("shell", 2, True)
    assert second.messages[:2] == first.messages
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "user"]
    assert named in second.messages[3]["content"]
    assert "Step" in second.messages[3]["content"]
    assert '"required":["tool"]' in second.messages[3]["content"]


async def test_repair_of_a_cut_answer_gets_more_room():
    """The token limit doubles, and the limit is named, when the first answer ran into it."""
    async with ScriptedServer({"Step": [cut(STEP), STEP]}) as server, client_of(server) as model:
        await model.ask(question(max_tokens=100))
    assert [request.body["max_tokens"] for request in server.player.requests] == [100, 200]
    assert "token limit" in server.player.requests[1].messages[3]["content"]


@pytest.mark.parametrize("over_and_over", ["9", "ab ", "the same line again\n"])
async def test_an_answer_that_goes_round_in_circles_is_not_asked_for_again(over_and_over: str):
    """It would go round again, in twice the room."""
    endless = Reply(text='{"tool": "' + over_and_over * 400, finish="length")
    async with ScriptedServer({"Step": [endless]}) as server, client_of(server) as model:
        with pytest.raises(ModelAnswerInvalid, match="over and over"):
            await model.ask(question())
    assert len(server.player.requests) == 1


async def test_a_second_bad_answer_is_a_clear_error():
    """The error names the contract, the problem and the token limit, holds the text, and says what was spent."""
    async with ScriptedServer({"Step": [wrong_types(STEP), cut(STEP)]}) as server, client_of(server) as model:
        with pytest.raises(ModelAnswerInvalid, match=r"no valid Step.*cut off.*token limit") as caught:
            await model.ask(question())
    assert caught.value.answer.startswith('{"tool"')
    assert caught.value.spent is not None
    assert caught.value.spent.requests == 2
    assert caught.value.spent.usage.prompt_tokens > 0


async def test_a_model_that_thinks_gets_room_for_it():
    """Once thoughts were seen, the limit leaves room for them beside the answer."""
    replies = [reasoned(STEP), STEP]
    async with ScriptedServer({"Step": replies}) as server, client_of(server) as model:
        await model.ask(question(max_tokens=100))
        await model.ask(question(max_tokens=100))
    first, second = (cast(int, request.body["max_tokens"]) for request in server.player.requests)
    assert first == 100
    assert second > 4_000


async def test_transient_faults_are_outlived():
    """429, 5xx, a cut connection and a stall are tried again, on the injected clock."""
    clock = FakeClock(auto_advance=True)
    faults = [too_many_requests(7), server_error(503), cut_connection(STEP), stall(), STEP]
    policy = RetryPolicy(attempts=5, per_call=0.3)
    async with ScriptedServer({"Step": faults}) as server, client_of(server, clock=clock, retry=policy) as model:
        answer = await model.ask(question())
    assert (answer.value.tool, answer.requests, answer.repaired) == ("shell", 5, False)
    assert len(clock.slept) == 4
    assert clock.slept[0] >= 7


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "API key"), (403, "API key"), (404, "/v1"), (400, "HTTP 400"), (422, "HTTP 422")]
)
async def test_a_refusal_is_final(status: int, hint: str):
    """What is refused in every form is an error with the status, the server's first words and what to do."""
    fault = server_error(status, "no such thing")
    async with (
        ScriptedServer(lambda asked: fault if asked.number == 1 else server_error(status, "later")) as server,
        client_of(server) as model,
    ):
        with pytest.raises(ModelRefused, match=f"no such thing.*{hint}|{hint}.*no such thing") as caught:
            await model.ask(question())
    assert caught.value.status == status


async def test_the_models_own_no_is_a_refusal():
    """A filled refusal field is neither repaired nor tried again."""
    async with ScriptedServer({"Step": [refusal("not that")]}) as server, client_of(server) as model:
        with pytest.raises(ModelRefused, match=r"declined.*not that"):
            await model.ask(question())


@pytest.mark.parametrize(
    ("refuse", "wire", "refused"),
    [
        ((), "json_schema", 0),
        (["json_schema"], "forced_tool", 1),
        (["json_schema", "forced_tool"], "json_object", 2),
        (["json_schema", "forced_tool", "json_object"], "prompted", 3),
    ],
)
async def test_structure_by_the_best_way_the_server_has(refuse: list[str], wire: str, refused: int):
    """Found out by trying once, remembered for the next question; weaker forms state the schema in the prompt."""
    async with ScriptedServer({"Step": [STEP, STEP]}, refuse=refuse) as server, client_of(server) as model:
        first = await model.ask(question())
        second = await model.ask(question())
    assert (first.wire, second.wire) == (wire, wire)
    assert (first.requests, second.requests) == (1 + refused, 1)
    assert len(server.player.refused) == refused
    asked = server.player.requests[0]
    assert asked.system == "You are R3.\ncontract: Step"
    assert ("JSON schema" in asked.user) == (wire in ("json_object", "prompted"))


@pytest.mark.parametrize(("ids", "window"), [(["x"], 1_000), (["x", "m"], 2_000), (["x", "y"], 32_768)])
async def test_the_window_is_that_of_the_model_that_is_asked(ids: list[str], window: int) -> None:
    """A server that has several tells of each; the only one of another may have another name."""
    data = [
        {"id": each, "owned_by": "llamacpp", "meta": {"n_ctx": 1_000 * number}}
        for number, each in enumerate(ids, 1)
    ]

    class Listing(HttpTransport):
        async def models(self, *, timeout: float) -> TransportReply:
            return TransportReply(200, {}, cast(Json, {"data": data}))

    model = EndpointModel(Listing("http://127.0.0.1:9/v1"), "m", FakeClock(auto_advance=True))
    assert (await model.known()).window == window
    await model.close()


async def test_many_questions_at_once_learn_together():
    """Parallel questions to a server that knows no schemas all get answers, and the form is weakened once."""

    def answering(asked: Asked) -> dict[str, str]:
        return STEP

    async with ScriptedServer(answering, refuse=["json_schema"]) as server, client_of(server) as model:
        answers = await asyncio.gather(*(model.ask(question(user=str(number))) for number in range(32)))
    assert {answer.wire for answer in answers} == {"forced_tool"}
