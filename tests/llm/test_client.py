from __future__ import annotations

import asyncio
from typing import cast

import pytest
from pydantic import BaseModel, ConfigDict

from artoo.contracts.errors import ModelAnswerInvalid, ModelRefused, ModelUnreachable
from artoo.llm.client import EndpointModel
from artoo.llm.http import HttpTransport
from artoo.llm.request import ServerTraits
from artoo.llm.retry import RetryPolicy
from artoo.llm.runaway import runs_away
from artoo.llm.transport import Json, TransportReply
from artoo.ports.model import Question, Tier
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
    with_body,
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


@pytest.mark.parametrize("text", ["-" * 300, "0, " * 100, "".join(f"row {each}\n" for each in range(200)), ""])
def test_what_somebody_may_want_goes_round_in_no_circle(text: str):
    """A ruler, a list of zeros, lines that differ."""
    assert not runs_away(text)


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
    ("fault", "said"),
    [
        (server_error(500, "out of memory"), "HTTP 500.*out of memory"),
        (cut_connection(), "connection.*broke"),
        (stall(), "no complete answer within 0.2 s"),
        (Reply(text="", message={}, status=200, usage={}), "Step"),
    ],
)
async def test_faults_that_stay_end_as_unreachable(fault: Reply, said: str):
    """When attempts run out, the error says what happened, at which server."""
    policy = RetryPolicy(attempts=2, per_call=0.2)
    expected = ModelAnswerInvalid if fault.message == {} else ModelUnreachable
    async with ScriptedServer({"Step": [fault, fault]}) as server, client_of(server, retry=policy) as model:
        with pytest.raises(expected, match=said) as caught:
            await model.ask(question())
    assert server.base_url in str(caught.value)


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


async def test_a_redirect_names_where_it_leads():
    """It is not followed, and the error says which address to configure if that server is meant."""
    moved = Reply(status=308, error="moved", headers={"Location": "https://new.example/v1/chat/completions"})
    async with ScriptedServer({"Step": [moved]}) as server, client_of(server) as model:
        with pytest.raises(ModelRefused, match=r"HTTP 308.*sends on to https://new\.example/v1.*set the base URL"):
            await model.ask(question())


async def test_rate_limit_that_stays_is_refused_with_its_status():
    """A caller that backs off can see the 429."""
    replies = [too_many_requests(1), too_many_requests(1)]
    async with (
        ScriptedServer({"Step": replies}) as server,
        client_of(server, retry=RetryPolicy(attempts=2)) as model,
    ):
        with pytest.raises(ModelRefused) as caught:
            await model.ask(question())
    assert caught.value.status == 429


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


async def test_schema_is_named_like_the_contract():
    """The response format carries the contract's name and a schema that forbids unknown fields."""
    async with ScriptedServer({"Step": [STEP]}) as server, client_of(server) as model:
        await model.ask(question())
    body = server.player.requests[0].body
    form = cast(dict[str, dict[str, object]], body["response_format"])["json_schema"]
    assert form["name"] == "Step"
    assert cast(dict[str, object], form["schema"])["additionalProperties"] is False
    assert "strict" not in form
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0, 256)
    assert "seed" not in body


async def test_a_closed_schema_is_asked_for_strictly():
    """Where every field is required, the schema can be enforced, and is asked for so."""

    class Verdict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        met: bool

    async with ScriptedServer({"Verdict": [Verdict(met=True)]}) as server, client_of(server) as model:
        await model.ask(Question("Verdict", Verdict, "contract: Verdict", "?", Tier.TOOL))
    form = cast(dict[str, dict[str, object]], server.player.requests[0].body["response_format"])
    assert form["json_schema"]["strict"] is True


async def test_variants_sample():
    """Variant 0 is greedy; another variant asks with a temperature and its number as seed."""
    async with ScriptedServer({"Step": [STEP]}) as server, client_of(server) as model:
        await model.ask(question(variant=3))
    body = server.player.requests[0].body
    assert body["seed"] == 3
    assert cast(float, body["temperature"]) > 0


@pytest.mark.parametrize(
    ("complaint", "gone", "there"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature", "max_tokens"),
    ],
)
async def test_parameters_that_a_server_refuses_are_left_out(complaint: str, gone: str, there: str):
    """Reasoning models refuse some parameters; the request goes on without them, and stays so."""
    async with (
        ScriptedServer({"Step": [server_error(400, complaint), STEP, STEP]}) as server,
        client_of(server) as model,
    ):
        await model.ask(question())
        await model.ask(question())
    for request in server.player.requests[1:]:
        assert gone not in request.body
        assert there in request.body


async def test_what_may_hold_a_block_is_held_by_nothing():
    """No schema over an answer with a fenced block, on any server; which one it is, is asked once."""
    reply = with_body({"tool": "shell"}, "echo '```'")
    async with ScriptedServer({"Step": [reply, reply]}, owned_by="llamacpp") as server, client_of(server) as model:
        first = await model.ask(question(body_field="command"))
        await model.ask(question(body_field="command"))
    body = server.player.requests[0].body
    assert first.value == Step(tool="shell", command="echo '```'")
    assert (first.wire, server.model_lists) == ("free", 1)
    assert not {"response_format", "stop"} & set(body) and body["cache_prompt"] is True
    assert server.player.requests[0].system == question().system


async def test_a_small_model_stops_at_the_closing_fence(monkeypatch: pytest.MonkeyPatch):
    """A model that is known to be small writes nothing after its program; a block without its end is whole."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))
    cut = Reply(text='I list them.\n{"tool": "shell"}\n```bash\nls')
    async with ScriptedServer({"Step": [cut]}, owned_by="llamacpp") as server, client_of(server) as model:
        answer = await model.ask(question(body_field="command"))
        assert (await model.known()).small
    assert answer.value.command == "ls"
    assert server.player.requests[0].body["stop"] == ["\n```\n"]


async def test_the_window_is_the_smaller_one():
    """What the operator says of the context and what the server tells: the smaller one counts."""
    async with ScriptedServer({}, owned_by="llamacpp") as server:
        async with client_of(server, window=4_096) as model:
            assert (await model.known()).window == 4_096
        async with client_of(server) as model:
            assert not (await model.known()).small


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


async def test_missing_usage_is_estimated():
    """A server that does not count tokens still yields figures, marked as estimates."""
    uncounted = Reply(text='{"tool": "a"}', usage={})
    async with ScriptedServer({"Step": [uncounted]}) as server, client_of(server) as model:
        answer = await model.ask(question())
    assert answer.usage.estimated
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("usage", "prompt", "completion"),
    [({"prompt_tokens": 900}, 900, 3), ({"completion_tokens": 70}, 5, 70), ({"total_tokens": 970}, 5, 3)],
)
async def test_a_part_of_the_usage_that_is_missing_is_estimated(
    usage: dict[str, object], prompt: int, completion: int
):
    """A budget of tokens or money counts both: a part that a server leaves out is not free."""
    reply = Reply(text='{"tool": "a"}', usage=usage)
    async with ScriptedServer({"Step": [reply]}) as server, client_of(server) as model:
        used = (await model.ask(question())).usage
    assert used.prompt_tokens >= prompt and used.completion_tokens >= completion and used.estimated


async def test_thoughts_that_a_server_does_not_count_are_estimated():
    """They are written and paid for like the answer, wherever they stand."""
    message = {"content": '{"tool": "a"}', "reasoning_content": "hm, " * 1_000}
    async with ScriptedServer({"Step": [Reply(message=message, usage={})]}) as server, client_of(server) as model:
        assert (await model.ask(question())).usage.completion_tokens >= 1_000


async def test_cached_tokens_are_reported():
    """The share of the prompt that the server had in its cache comes back with the answer."""
    async with ScriptedServer({"Step": [STEP, STEP]}) as server, client_of(server) as model:
        await model.ask(question(user="first"))
        answer = await model.ask(question(user="second"))
    assert 0 < answer.usage.cached_tokens <= answer.usage.prompt_tokens
