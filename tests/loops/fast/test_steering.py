"""The messages that reach a running executor, and its samples; see also `test_steered_tasks`."""

from __future__ import annotations

import asyncio

from executing import Bench, TableOfTools, bench, shell, turn

from artoo.contracts.conversation import ModelTurn, Said
from artoo.contracts.execution import ExecutionResult, ToolCalled
from artoo.contracts.recording import Observed, Source
from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive
from artoo.contracts.steering import CourseDirective, SampleDue, UserMessage

TOOLS = TableOfTools({"ls": "a.txt", **{f"echo {number}": str(number) for number in range(20)}})


def said(it: Bench, number: int) -> list[tuple[str, str]]:
    """The user's side of a turn's conversation, without the assignment."""
    return [(m.source, m.text) for m in it.model.shown[number].messages[1:] if isinstance(m, Said)]


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
