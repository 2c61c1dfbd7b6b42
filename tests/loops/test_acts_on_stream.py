"""Acts on the stream: which calls a task made, numbered the same whenever it is run."""

from __future__ import annotations

from scenario import World, plan, python, says, shell, subtask

from artoo.contracts.execution import CorrectionSignal, ToolCalled, ToolStarted


async def test_each_call_has_its_act_over_all_attempts(world: World) -> None:
    """Started and called share an act; acts count over attempts, and a repetition is no act."""
    world.file("a.txt", "x\n")
    again = shell("wc -l < missing.txt", final=False)
    script = {
        "Plan": plan(subtask("count", tool="shell")),
        "ExecutorStep": [again, again, says("it has 9 lines"), python("print(len(list(open('a.txt'))))")],
    }
    ended = await world.play("How many lines has a.txt?", script)
    called, started = ended.all(ToolCalled), ended.all(ToolStarted)
    subtask_id = called[0].subtask_id
    assert [one.act for one in called] == [f"{subtask_id}/{number}" for number in range(1, len(called) + 1)]
    assert len(called) == 3
    assert [one.act for one in started] == [one.act for one in called]
    assert [one.effects.value for one in started] == ["staged"] * len(started)
    assert ended.all(CorrectionSignal)
    assert len({one.attempt for one in started}) == 2


async def test_a_start_comes_before_its_end_and_answers_what_caused_it(world: World) -> None:
    """On the stream a ToolStarted stands before its ToolCalled and names the same cause."""
    world.file("a.txt", "x\n")
    script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": shell("wc -l < a.txt")}
    ended = await world.play("How many lines has a.txt?", script)
    pair = [one for one in ended.envelopes if isinstance(one.payload, ToolStarted | ToolCalled)]
    assert [one.kind for one in pair] == ["ToolStarted", "ToolCalled"]
    assert pair[0].cause_id == pair[1].cause_id
    assert pair[0].subtask_id == pair[1].subtask_id is not None
