from __future__ import annotations

import pytest
from pydantic import BaseModel

from artoo.contracts.errors import ConfigurationError, ModelRefused, ModelUnreachable
from artoo.llm import guard
from artoo.llm.http import HttpTransport
from artoo.ports.model import Question, Tier
from artoo.testing import (
    Asked,
    ScriptedModel,
    ScriptedServer,
    ScriptError,
    cut_connection,
    fenced,
    forbid_real_models,
    server_error,
    too_many_requests,
)


class Note(BaseModel):
    text: str


def ask(text: str = "?", contract: str = "Note") -> Question[Note]:
    return Question(contract, Note, f"x\ncontract: {contract}", text, Tier.TOOL)


async def test_queues_by_contract_and_callables():
    """Each contract has its own queue, in order; a callable sees the request; one for all answers everything."""

    def echo(asked: Asked) -> Note:
        return Note(text=f"{asked.contract} {asked.user} {asked.wire}")

    with ScriptedModel({"A": [Note(text="1"), fenced({"text": "2"})], "B": echo, "C": Note(text="3")}) as model:
        assert [(await model.ask(ask(contract="A"))).value.text for _ in range(2)] == ["1", "2"]
        assert (await model.ask(ask("hi", "B"))).value.text == "B hi json_schema"
        assert (await model.ask(ask(contract="C"))).value.text == "3"
        assert [asked.number for asked in model.player.of("A")] == [1, 2]
    assert (await ScriptedModel(echo, leftover=True).ask(ask("yo"))).value.text == "Note yo json_schema"


async def test_contract_from_the_prompt_when_no_schema_is_sent():
    """A server without schemas still knows the role by its `contract:` line."""
    with ScriptedModel({"Note": [Note(text="a")]}, refuse=["json_schema", "forced_tool", "json_object"]) as model:
        answer = await model.ask(ask())
    assert answer.wire == "prompted"
    assert len(model.player.refused) == 3


async def test_a_model_answers_only_in_its_block():
    """Outside of one nobody would be told of script that is left, as where a test only hands the model on."""
    with pytest.raises(ScriptError, match="with ScriptedModel"):
        await ScriptedModel({"Note": Note(text="a")}).ask(ask())


async def test_unused_script_is_an_error():
    """Leaving the block with replies left names the contract and the next of them."""
    with (
        pytest.raises(ScriptError, match=r"unused script: 2 for Note.*left over"),
        ScriptedModel({"Note": [Note(text="left over"), Note(text="b")]}),
    ):
        pass
    with pytest.raises(ScriptError, match="unused script: 1 for Note"):
        async with ScriptedServer({"Note": Note(text="a")}):
            pass


async def test_calls_without_script_are_an_error_even_when_swallowed():
    """The caller is refused, and the end of the block says what was asked."""
    with (
        pytest.raises(ScriptError, match=r"without script: request 1, contract Note: 'who\?'"),
        ScriptedModel({}) as model,
        pytest.raises(ModelRefused, match="the script has nothing"),
    ):
        await model.ask(ask("who?"))


async def test_other_failures_are_not_hidden():
    """A test that fails for another reason shows that reason, with the unscripted call as a note."""
    with pytest.raises(ModelRefused) as caught, ScriptedModel({"Note": [], "Other": ["left"]}) as model:
        await model.ask(ask("who?"))
    assert any("asked without script: Note" in note for note in caught.value.__notes__)


async def test_faults_in_process_are_those_of_a_server():
    """The model double meets faults with the real client: retries, then the real errors."""
    with ScriptedModel({"Note": [too_many_requests(5), server_error(), Note(text="a")]}) as model:
        assert (await model.ask(ask())).requests == 3
    with ScriptedModel({"Note": [cut_connection()] * 4}) as model, pytest.raises(ModelUnreachable):
        await model.ask(ask())


async def test_server_demands_its_key():
    """With an API key set, other keys are refused and nothing of the script is used."""
    async with ScriptedServer({"Note": [Note(text="a")]}, api_key="right") as server:
        wrong, right = HttpTransport(server.base_url, "wrong"), HttpTransport(server.base_url, "right")
        body = {"model": "m", "messages": [{"role": "system", "content": "contract: Note"}]}
        assert (await wrong.post(body, timeout=5)).status == 401
        assert (await right.post(body, timeout=5)).status == 200
        await wrong.close()
        await right.close()


async def test_usage_imitates_a_prefix_cache():
    """Tokens are counted by rule of thumb; what an earlier prompt began with counts as cached."""
    with ScriptedModel({"Note": [Note(text="a"), Note(text="b")]}) as model:
        first = await model.ask(ask("x" * 400))
        second = await model.ask(ask("x" * 400 + "y" * 400))
    assert first.usage.cached_tokens == 0
    assert first.usage.prompt_tokens > 100
    assert second.usage.cached_tokens >= 100
    assert second.usage.prompt_tokens >= 200


def test_the_guard_nests():
    """Allowing inside a forbidden stretch holds for its block only; doubles are always admitted."""
    with pytest.raises(ConfigurationError):
        guard.check("http://real/v1")
    with forbid_real_models(allow=True):
        guard.check("http://real/v1")
        with forbid_real_models(), pytest.raises(ConfigurationError):
            guard.check("http://real/v1")
        guard.check("http://real/v1")
    with pytest.raises(ConfigurationError):
        guard.check("http://real/v1")
    guard.admit("http://double/v1")
    guard.check("http://double/v1")
    guard.retract("http://double/v1")
