"""The executor's conversation: turns, calls, its own tools, and how an attempt ends."""

from __future__ import annotations

from executing import TableOfTools, bench, read, shell, turn
from pydantic import JsonValue

from artoo.contracts.conversation import ChecklistUpdated, ModelTurn, Said, TextDelta, Took
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ExecutionResult, ToolCalled
from artoo.contracts.plan import FirstCall
from artoo.ports.model import Known

OUTPUTS = {"ls": "a.txt", "a.txt": "one\n", "b.txt": "two\n", "make x": "", "wc": "3"}


def tools() -> TableOfTools:
    return TableOfTools(OUTPUTS, waits={"a.txt": 5})


async def test_a_conversation_only_grows() -> None:
    """Each turn is asked with everything that the one before it was asked with, byte for byte, and more."""
    async with bench(turn(shell("ls")), turn(read("a.txt")), turn(text="one"), tools=tools()) as it:
        it.give(success_criteria=["it says one"])
        result = await it.until(ExecutionResult)
    first, second, third = it.model.shown
    assert first.messages == second.messages[: len(first.messages)]
    assert second.messages == third.messages[: len(second.messages)]
    assert (first.system, first.tools) == (third.system, third.tools)
    opening = first.messages[0]
    assert isinstance(opening, Said) and opening.source == "request"
    assert "do it" in opening.text and "it says one" in opening.text
    assert it.model.last == ["[1] ok\na.txt", "[2] ok\none"]
    assert (result.status, result.output, result.verbatim) == ("completed", "one", False)


async def test_what_is_on_the_stream_makes_up_the_conversation() -> None:
    """A log holds every message once: what was added, then the turn."""
    async with bench(turn(shell("ls")), turn(text="a.txt"), tools=tools()) as it:
        it.give()
        await it.until(ExecutionResult)
    rebuilt: list[object] = []
    for called in it.all(ModelCalled):
        assert called.turn is not None
        rebuilt += [*called.added, Took(turn=called.turn)]
    assert rebuilt[:-1] == list(it.model.shown[-1].messages)
    first, second = it.all(ModelCalled)
    assert "contract: ExecutorStep" in first.system.splitlines()
    assert (second.system, second.user) == ("", "")


async def test_calls_that_read_run_together_and_those_that_write_in_order() -> None:
    """Reads between two writes run at the same time, after the first and before the second."""
    asked = turn(shell("make x"), read("a.txt"), read("b.txt"), shell("wc"))
    async with bench(asked, turn(text="3"), tools=tools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
    order = it.tools.events
    assert order[:2] == ["begins make x", "ends make x"] and order[-2:] == ["begins wc", "ends wc"]
    assert order[2:4] == ["begins a.txt", "begins b.txt"]
    assert order[4:6] == ["ends b.txt", "ends a.txt"]
    assert [call.input for call in result.tool_calls] == ["make x", "a.txt", "b.txt", "wc"]
    assert [called.call for called in it.all(ToolCalled)] == list(result.tool_calls)
    assert [called.act for called in it.all(ToolCalled)] == ["s1/1", "s1/2", "s1/3", "s1/4"]
    assert it.model.last[1:3] == ["[2] ok\none", "[3] ok\ntwo"]


async def test_an_output_can_be_delivered_word_for_word() -> None:
    """In the same turn as its call, or later by its number."""
    async with bench(turn(shell("ls"), ("deliver", {})), tools=tools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
    assert (result.output, result.verbatim, result.put_out_by) == ("a.txt", True, 1)
    async with bench(turn(shell("ls"), shell("wc")), turn(("deliver", {"call": 1})), tools=tools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
    assert (result.output, result.put_out_by) == ("a.txt", 1)


async def test_a_small_models_failed_program_ends_its_attempt() -> None:
    """It is asked for another way then, and shown more."""
    small = Known(small=True, native=False)
    turns = turn(shell("no"), ("deliver", {})), turn(shell("ls"), ("deliver", {}))
    async with bench(*turns, tools=tools(), known=small) as it:
        it.give(surroundings="all files", named_files="one file")
        first = await it.until(ExecutionResult)
        it.correct("do it right")
        second = await it.until(ExecutionResult)
    assert (first.status, second.status, second.output) == ("uncertain", "completed", "a.txt")
    assert first.small_model and "contract: ExecutorStep" in it.model.shown[0].text_system
    begun, correction = (each.text for each in it.model.shown[-1].messages if isinstance(each, Said))
    assert "one file" in begun and "all files" not in begun and "all files" in correction


async def test_what_is_wrong_with_a_request_is_read_by_the_model() -> None:
    """Arguments that could not be read, and those that do not fit, make no call."""
    broken = ModelTurn(calls=(turn(shell("x")).calls[0].model_copy(update={"problem": "half a JSON object"}),))
    async with bench(broken, turn(("deliver", {"call": "x"})), turn(text="done"), tools=tools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
    assert it.model.last == ["half a JSON object", "deliver: 'call' must be a whole number, not 'x'"]
    assert result.tool_calls == ()


async def test_a_correction_goes_on_in_the_same_conversation() -> None:
    """The second attempt is asked with everything before it; call numbers go on."""
    turns = turn(shell("ls")), turn(text="wrong"), turn(shell("wc")), turn(text="3")
    async with bench(*turns, tools=tools()) as it:
        it.give()
        await it.until(ExecutionResult)
        it.correct("count")
        result = await it.until(ExecutionResult)
    assert it.model.shown[1].messages == it.model.shown[2].messages[: len(it.model.shown[1].messages)]
    correction = it.model.shown[2].messages[-1]
    assert isinstance(correction, Said) and correction.text == "Not accepted: it is wrong\ncount"
    assert (result.attempt, result.attempt_from) == (2, 1)
    assert it.model.last == ["[1] ok\na.txt", "[2] ok\n3"]


async def test_first_calls_are_made_before_the_first_turn() -> None:
    """They are read-only, recorded like any other, and stand in the conversation as a turn with results."""
    first = [FirstCall(tool="read_file", arguments={"path": name}) for name in ("a.txt", "b.txt")]
    writes = FirstCall(tool="shell", arguments={"command": "make x"})
    async with bench(turn(text="one, two"), tools=tools()) as it:
        it.give(first_calls=[*first, writes])
        result = await it.until(ExecutionResult)
    assert [call.input for call in result.tool_calls] == ["a.txt", "b.txt"]
    assert it.tools.events[:2] == ["begins a.txt", "begins b.txt"]
    assert it.model.last == ["[1] ok\none", "[2] ok\ntwo"]
    assert isinstance(it.model.shown[0].messages[1], Took)


async def test_the_checklist_is_on_the_stream() -> None:
    """`update_plan` changes nothing on the machine; its items are typed."""
    items: list[JsonValue] = [{"text": "read", "status": "done"}, {"text": "write", "status": "pending"}]
    wrong = turn(("update_plan", {"items": [{"text": "a", "status": "maybe"}]}))
    async with bench(wrong, turn(("update_plan", {"items": items})), turn(text="ok"), tools=tools()) as it:
        it.give()
        await it.until(ExecutionResult)
    (updated,) = it.all(ChecklistUpdated)
    assert [item.text for item in updated.items] == ["read", "write"]
    assert it.model.last[0].startswith("update_plan: ") and it.model.last[1] == "The user sees it."


async def test_words_are_published_as_they_come() -> None:
    """Several tokens at a time; the rest before the call's record."""
    async with bench(turn(text="Hello"), tools=tools()) as it:
        it.model.words = ["He", "l", "lo"]
        it.give()
        await it.until(ExecutionResult)
    assert "".join(delta.text for delta in it.all(TextDelta)) == "Hello"
    kinds = [each.kind for each in it.envelopes]
    assert max(i for i, kind in enumerate(kinds) if kind == "TextDelta") < kinds.index("ModelCalled")


async def test_an_answer_that_was_cut_off_is_said_again() -> None:
    """It would be half an answer."""
    cut = ModelTurn(text="half an", cut=True)
    async with bench(cut, turn(text="whole"), tools=tools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
    assert result.output == "whole"
    assert it.model.shown[1].messages[-1].model_dump()["text"].startswith("Your message was cut off")
