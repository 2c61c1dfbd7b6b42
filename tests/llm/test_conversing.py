"""Turns of conversations over the wire `chat`, with function calling and in the text dialect."""

from __future__ import annotations

import pytest

from artoo.contracts.conversation import Said
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid
from artoo.llm.budget import Budget, BudgetedModel
from artoo.llm.live_text import LiveText
from artoo.llm.prices import Price, PriceList
from artoo.testing import Reply, ScriptedModel, ScriptedServer, reasoned, with_body
from llm.asking import client_of
from llm.conversing import answered, conversation


async def test_a_scripted_step_is_a_native_call() -> None:
    """A final step is the call and `deliver`; an answer is text; the results go back as tool messages."""
    steps = [with_body({"tool": "shell", "is_final": False}, "ls"), {"tool": "answer", "input": "a.txt"}]
    async with ScriptedServer({"ExecutorStep": steps}) as server, client_of(server) as model:
        begun = conversation()
        first = await model.converse(begun)
        assert [(call.name, call.arguments) for call in first.turn.calls] == [("shell", {"command": "ls"})]
        second = await model.converse(answered(begun, first, "[1] a.txt"))
        assert (second.turn.text, second.turn.calls, second.native) == ("a.txt", (), True)
    sent = server.player.requests[1].body["messages"]
    assert isinstance(sent, list) and isinstance(sent[3], dict)
    assert (sent[3]["role"], sent[3]["content"]) == ("tool", "[1] a.txt")
    assert "[1] a.txt" in server.player.requests[1].user


async def test_a_final_step_is_delivered() -> None:
    """`is_final` becomes a request for `deliver` in the same turn."""
    with ScriptedModel({"ExecutorStep": with_body({"tool": "shell", "is_final": True}, "ls")}) as model:
        turn = (await model.converse(conversation())).turn
    assert [call.name for call in turn.calls] == ["shell", "deliver"]


async def test_words_are_heard_as_they_come() -> None:
    """In pieces, once, and thoughts are not among them."""
    heard: list[str] = []
    reply = reasoned("There are three files in here.")
    async with ScriptedServer({"ExecutorStep": reply}) as server, client_of(server) as model:
        spoken = await model.converse(conversation(), heard.append)
    assert len(heard) > 1 and "".join(heard) == spoken.turn.text == "There are three files in here."
    assert spoken.turn.reasoning == {"reasoning_content": "Let me see."}


async def test_a_server_that_refuses_tools_is_asked_in_text() -> None:
    """In the middle of a conversation too; it is remembered, and both dialects give the same turn."""
    steps = [with_body({"tool": "shell", "is_final": True}, "ls"), {"tool": "cannot", "input": "no"}]
    async with (
        ScriptedServer({"ExecutorStep": steps}, refuse=["native"]) as server,
        client_of(server) as model,
    ):
        begun = conversation()
        first = await model.converse(begun)
        assert [call.name for call in first.turn.calls] == ["shell", "deliver"] and not first.native
        second = await model.converse(answered(begun, first, "[1] a.txt", "delivered"))
        assert [(call.name, call.arguments) for call in second.turn.calls] == [("cannot", {"reason": "no"})]
        assert len(server.player.refused) == 1
        assert not (await model.known()).native
    assert server.player.requests[1].messages[2] == {
        "role": "assistant",
        "content": '{"tool": "shell", "is_final": true}\n```bash\nls\n```',
    }


@pytest.mark.parametrize(
    "written",
    [
        '{"tool": "shell", "input": "ls"}',
        '{"tool": "shell"}\n```bash\nls\n```',
        '```json\n{"tool": "shell", "input": "ls"}\n```',
        '<think>{"tool": "read_file"}</think>\n{"tool": "shell", "input": "ls"}',
    ],
)
async def test_a_model_that_writes_its_calls_is_asked_in_text(written: str) -> None:
    """The first such answer is read as the call that it is, and the server is not offered functions again."""
    reply = Reply(message={"role": "assistant", "content": written})
    with ScriptedModel({"ExecutorStep": [reply, {"tool": "answer", "input": "a.txt"}]}) as model:
        begun = conversation()
        first = await model.converse(begun)
        (call,) = first.turn.calls
        assert (call.name, str(call.arguments["command"]).strip()) == ("shell", "ls")
        second = await model.converse(answered(begun, first, "[1] a.txt"))
        assert (second.turn.text, second.native) == ("a.txt", False)


@pytest.mark.parametrize(
    "text", ['{"tool": "hammer", "price": 12}', 'For example {"tool": "shell", "input": "ls"}', "{}"]
)
async def test_json_that_is_no_call_is_an_answer(text: str) -> None:
    """An object whose tool is not offered, one in the middle of words, and an empty one stay what they are."""
    with ScriptedModel({"ExecutorStep": Reply(message={"role": "assistant", "content": text})}) as model:
        spoken = await model.converse(conversation())
    assert (spoken.turn.text, spoken.turn.calls, spoken.native) == (text, (), True)


async def test_the_same_ids_in_every_answer_are_told_apart() -> None:
    """Ids are unique within a conversation, whatever a server says."""
    call = {"id": "call_0", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
    reply = Reply(message={"role": "assistant", "content": None, "tool_calls": [call, call]}, finish="tool_calls")
    with ScriptedModel({"ExecutorStep": [reply, reply]}) as model:
        begun = conversation()
        first = await model.converse(begun)
        second = await model.converse(answered(begun, first, "[1] x", "[2] x"))
    ids = [call.id for spoken in (first, second) for call in spoken.turn.calls]
    assert len(set(ids)) == 4


async def test_half_a_call_is_never_made() -> None:
    """Arguments that are cut off come back as a problem, and without any argument."""
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": '{"command": "rm -rf a'}}
    reply = Reply(message={"role": "assistant", "content": None, "tool_calls": [call]}, finish="length")
    with ScriptedModel({"ExecutorStep": reply}) as model:
        turn = (await model.converse(conversation())).turn
    assert turn.calls[0].arguments == {} and "never closes" in turn.calls[0].problem and turn.cut


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    """And then it is an error."""
    with ScriptedModel({"ExecutorStep": ["", "Done."]}) as model:
        spoken = await model.converse(conversation())
    assert (spoken.turn.text, spoken.repaired, spoken.requests) == ("Done.", True, 2)
    with ScriptedModel({"ExecutorStep": ["", ""]}) as model, pytest.raises(ModelAnswerInvalid):
        await model.converse(conversation())


async def test_two_user_messages_in_a_row_are_one() -> None:
    """Several servers refuse anything else."""
    with ScriptedModel({"ExecutorStep": "Done."}) as model:
        await model.converse(conversation(Said(text="And count them.", source="user")))
    messages = model.player.requests[0].messages
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"] == "List the files.\n\nAnd count them."


async def test_a_turn_is_paid_from_the_tasks_budget() -> None:
    """Each request of it counts, and what it cost comes back with it."""
    budget = Budget(max_calls=2, prices=PriceList("EUR", {"scripted": Price(2.0, 0.5, 10.0)}))
    model = BudgetedModel(ScriptedModel({"ExecutorStep": ["", "Done."]}, leftover=True), budget)
    spoken = await model.converse(conversation())
    assert (spoken.billed, budget.cost().llm_calls) == (2, 2) and (spoken.money or 0) > 0
    with pytest.raises(BudgetExhausted):
        await model.converse(conversation())


def test_a_second_try_says_nothing_twice() -> None:
    """It goes on where the first one ended; one that says something else is heard when it is whole."""
    heard: list[str] = []
    live = LiveText(heard.append)
    for piece in ("<think>hm", "</think>I ", "look."):
        live.add(piece)
    live.restart()
    for piece in ("I look.", " Three files."):
        live.add(piece)
    live.end("I look. Three files.")
    assert "".join(heard) == "I look. Three files."
    live.restart()
    live.add("Something else.")
    assert "".join(heard) == "I look. Three files."
