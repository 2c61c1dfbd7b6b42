"""Turns of conversations over the wire `chat`, with function calling and in the text dialect."""

from __future__ import annotations

import pytest

from artoo.contracts.errors import BudgetExhausted
from artoo.llm.budget import Budget, BudgetedModel
from artoo.llm.prices import Price, PriceList
from artoo.llm.text.live_text import LiveText
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
    async with ScriptedServer({"ExecutorStep": steps}, refuse=["native"]) as server, client_of(server) as model:
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


async def test_a_turn_is_paid_from_the_tasks_budget() -> None:
    """Each request of it counts, and what it cost comes back with it."""
    budget = Budget(
        max_calls=2, prices=PriceList("EUR", {"scripted": Price(prompt=2.0, cached=0.5, completion=10.0)})
    )
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
