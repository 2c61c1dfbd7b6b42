"""What reaches a running executor: messages, holds, directives, answers; and the samples that it asks for."""

from __future__ import annotations

import asyncio

from executing import Bench, TableOfTools, bench, shell, turn

from artoo.contracts.conversation import ModelTurn, Said
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ExecutionResult, ToolCalled
from artoo.contracts.recording import Observed, Source
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive
from artoo.contracts.steering import CourseDirective, QuestionAnswered, QuestionAsked, SampleDue, UserMessage

TOOLS = TableOfTools({"ls": "a.txt", **{f"echo {number}": str(number) for number in range(20)}})


def said(it: Bench, number: int) -> list[tuple[str, str]]:
    """The user's side of a turn's conversation, without the assignment."""
    return [(m.source, m.text) for m in it.model.shown[number].messages[1:] if isinstance(m, Said)]


async def test_a_message_reaches_the_next_turn() -> None:
    """It is a message of the same conversation, and the result names it as read."""

    async def meanwhile() -> ModelTurn:
        it.say(UserMessage(text="use tabs"))
        await asyncio.sleep(0)
        return turn(shell("ls"))

    async with bench(meanwhile, turn(text="done"), tools=TOOLS) as it:
        it.give(said=["be quick"], said_ids=["m0"])
        result = await it.until(ExecutionResult)
    assert "be quick" in str(it.model.shown[0].messages[0])
    assert said(it, 1) == [("user", "use tabs")]
    message = next(each for each in it.envelopes if isinstance(each.payload, UserMessage))
    assert result.heard == ("m0", message.id)


async def test_a_hold_interrupts_the_turn_and_waits() -> None:
    """Nothing that ran is repeated; the next message goes on from there."""
    asked = asyncio.Event()

    async def never() -> ModelTurn:
        asked.set()
        await asyncio.sleep(3_600)
        raise AssertionError

    async with bench(turn(shell("ls")), never, turn(text="done"), tools=TableOfTools({"ls": "a.txt"})) as it:
        it.give()
        await asked.wait()
        it.say(UserMessage(hold=True, by="terminal"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(it.model.shown) == 2
        it.say(UserMessage(text="stop counting"))
        result = await it.until(ExecutionResult)
    assert result.output == "done" and it.tools.events == ["begins ls", "ends ls"]
    assert said(it, 2) == [("user", "stop counting")]
    assert len(it.all(ModelCalled)) == 2


async def test_a_hold_can_be_ended_without_a_word() -> None:
    """The interrupted turn is taken again."""
    asked = asyncio.Event()

    async def never() -> ModelTurn:
        asked.set()
        await asyncio.sleep(3_600)
        raise AssertionError

    async with bench(never, turn(text="done"), tools=TOOLS) as it:
        it.give()
        await asked.wait()
        it.say(UserMessage(hold=True))
        it.say(UserMessage())
        result = await it.until(ExecutionResult)
    assert result.output == "done" and result.heard == ()


async def test_the_executor_can_ask_the_user() -> None:
    """Only where a user can answer is it offered."""
    async with bench(turn(("ask_person", {"question": "which?"})), turn(text="ok"), tools=TOOLS, asks=True) as it:
        it.give()
        await it.until(QuestionAsked)
        asked: Envelope = it.envelopes[-1]
        it.say(QuestionAnswered(subtask_id="s1", answer="the red one"), cause=asked)
        await it.until(ExecutionResult)
    assert it.model.last == ["The user answers: the red one"]
    assert "ask_person" in [spec.name for spec in it.model.shown[0].tools]
    async with bench(turn(text="ok"), tools=TOOLS) as it:
        it.give()
        await it.until(ExecutionResult)
    assert "ask_person" not in [spec.name for spec in it.model.shown[0].tools]


def course(text: str, *, ends: bool = False) -> CourseDirective:
    return CourseDirective(
        subtask_id="s1", turn=8, directive=Directive.CHANGE_APPROACH, text=text, ends_attempt=ends
    )


async def test_a_long_attempt_is_sampled_and_obeys() -> None:
    """Every eight turns, with the calls since the last sample. A directive is a message, or ends the attempt."""
    turns = [turn(shell(f"echo {number}")) for number in range(20)]
    async with bench(*turns, tools=TOOLS) as it:
        it.give()
        sample = await it.until(SampleDue)
        it.say(course("try another way"), Role.SOLVER, it.envelopes[-1])
        second = await it.until(SampleDue)
        it.say(course("no progress", ends=True), Role.SOLVER, it.envelopes[-1])
        result = await it.until(ExecutionResult)
    assert (sample.turn, [call.output for call in sample.calls]) == (8, [str(number) for number in range(8)])
    assert (second.turn, second.calls[0].output) == (16, "8")
    assert ("control", "try another way") in said(it, -1)
    assert (result.status, result.output) == ("uncertain", "no progress")
    observed = [seen for seen in it.all(Observed) if seen.source is Source.MESSAGES]
    assert not observed  # the view of these tests keeps nothing; see tests of replay
    assert len(it.all(ToolCalled)) >= 16
