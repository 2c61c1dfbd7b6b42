"""The planner asks back: the task ends with its question, claims and teaches nothing, and the answer goes on."""

from __future__ import annotations

from scenario import Script, World, matches, plan, question, shell, subtask

from artoo.contracts.memory import MemoryWritten
from artoo.contracts.plan import Plan
from artoo.contracts.request import Turn
from artoo.contracts.solution import Directive, StoppedBy
from artoo.words.result import result_words

_ASKED = "Do you mean a.csv or b.csv?"


async def test_a_question_ends_the_task_with_one_call(world: World) -> None:
    """It may name what the planner was shown; nothing is done, claimed or remembered."""
    world.file("a.csv", "1\n")
    world.file("b.csv", "2\n")
    ended = await world.play("Sum it up.", {"Plan": question(_ASKED)})
    result = ended.result
    assert ended.contracts == ["Plan"] and not ended.calls
    assert (result.directive, result.stopped_by) == (Directive.ABANDON, StoppedBy.QUESTION)
    assert (result.output, result.unmet, result.detail, result.tried) == (_ASKED, (), "", ())
    assert not ended.all(MemoryWritten)
    assert ended.one(Plan).question == _ASKED

    told = result_words(result.language).plain(result)
    history = [Turn(input="Sum it up.", summary=told, task_id=result.task_id)]
    script: Script = {
        "TaskSpec": {"intent": "Sum up b.csv.", "corrects": False},
        "Plan": plan(subtask("sum", tool="shell")),
        "ExecutorStep": shell("cat b.csv"),
    }
    answered = await world.play("The second one.", script, history=history)
    assert _ASKED in answered.asked("TaskSpec")[0].user
    assert (answered.directives[-1], answered.result.output) == ("accept", "2")


async def test_a_question_after_a_failed_round_keeps_what_was_done(world: World) -> None:
    """What matched before is told, and what it made waits."""
    script: Script = {
        "Plan": [
            plan(
                subtask("make it", matches("made"), tool="shell"),
                subtask("find it", matches("found"), tool="shell", sequence=2),
                criteria=("both are done",),
            ),
            question(_ASKED),
        ],
        "ExecutorStep": lambda asked: shell("echo made > m.txt; echo made" if "make it" in asked.user else "false"),
    }
    ended = await world.play("Do both.", script)
    assert (ended.result.stopped_by, ended.result.output) == (StoppedBy.QUESTION, _ASKED)
    assert ended.result.done == ("make it",) and ended.result.changes.waits
