"""An attempt ends when it is stuck by facts, and never after a number of turns."""

from __future__ import annotations

from executing import TableOfTools, bench, read, turn

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.loops.fast.progress import MOST_IDLE, Progress


def called(given: str = "ls", output: str = "", **more: object) -> ToolCall:
    return ToolCall(tool="shell", identity=("shell",), input=given, output=output, **more)  # pyright: ignore[reportArgumentType]


def test_the_same_result_three_times_is_a_loop() -> None:
    """Another result, or a change in between, begins the count again."""
    progress = Progress()
    assert not progress.stuck_by([called()]) and not progress.stuck_by([called(output="x")])
    assert not progress.stuck_by([called()])
    assert "3 times" in progress.stuck_by([called()])
    progress = Progress()
    assert not progress.stuck_by([called(), called()])
    assert not progress.stuck_by([called("edit", changes=("/a",))])
    assert not progress.stuck_by([called(), called()])


def test_waiting_for_a_process_is_no_loop() -> None:
    """But it ends when nothing at all comes of it."""
    progress, waiting = Progress(), called("wait", status=CallStatus.RUNNING)
    said = [progress.stuck_by([waiting]) for _ in range(MOST_IDLE)]
    assert said[:-1] == [""] * (MOST_IDLE - 1) and "nothing changed" in said[-1]


def test_turns_without_anything_new_are_counted() -> None:
    """New output, a change and a message of the user begin the count again."""
    progress = Progress()
    for number in range(3 * MOST_IDLE):
        assert not progress.stuck_by([called(f"echo {number}", output=str(number))])
    for _ in range(MOST_IDLE - 1):
        assert not progress.stuck_by([])
    progress.disturbed()
    for _ in range(MOST_IDLE - 1):
        assert not progress.stuck_by([])
    assert progress.stuck_by([])


def test_a_refusal_is_not_worked_around() -> None:
    """The second operation that was not allowed ends the attempt, with what the tool said."""
    progress = Progress()
    no = called("send a", status=CallStatus.REFUSED, withheld_by="person", reason="the user said no")
    other = called("send b", status=CallStatus.REFUSED, withheld_by="person", reason="no again")
    assert not progress.stuck_by([no])
    assert progress.stuck_by([other]) == "no again"


async def test_a_loop_ends_the_attempt() -> None:
    """The result says why; the next attempt counts anew."""
    turns = [turn(read("gone"))] * 3
    async with bench(*turns, turn(text="not there"), tools=TableOfTools()) as it:
        it.give()
        result = await it.until(ExecutionResult)
        it.correct("say so")
        second = await it.until(ExecutionResult)
    assert (result.status, result.output) == ("uncertain", "the same call had the same result 3 times")
    assert not result.stuck and second.output == "not there"
