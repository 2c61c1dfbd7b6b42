"""A criterion that failed stays until it is met or replaced, whatever is planned next."""

from __future__ import annotations

from scenario import Json, World, exists, merged, moves, plan, replan, reply, shell, subtask, write

from artoo.contracts.findings import Found
from artoo.contracts.plan import Plan
from artoo.contracts.solution import Decided, StoppedBy

REQUEST = "Make a.txt, and make b.txt."
PARTS = plan(
    subtask("make a.txt", exists("a.txt")),
    subtask("make b.txt", exists("b.txt"), sequence=2),
    criteria=[{"text": "a.txt holds one", "check": {"check": "file_matches", "path": "a.txt", "regex": "one"}}],
)
ONCE: Json = {"max_retries": 0}


async def test_a_reply_does_not_make_a_failed_criterion_vanish(world: World) -> None:
    """What stands is delivered with the reply, the missing part is named, and D is not 0."""
    script = {
        "Plan": [PARTS, reply("I cannot make b.txt.")],
        "ExecutorStep": [write("a.txt", "one\n"), shell("ls")],
    }
    ended = await world.play(REQUEST, script, config=world.config(control=ONCE))
    assert (ended.directive, ended.result.stopped_by) == ("abandon", StoppedBy.MISSING_INPUT)
    assert [each.criterion for each in ended.result.unmet] == ["b.txt exists"]
    assert ended.all(Decided)[-1].loss.D > 0
    assert ended.result.output.endswith("I cannot make b.txt.")
    assert ended.result.done == ("make a.txt",)


async def test_a_weaker_plan_does_not_either(world: World) -> None:
    """The criterion of the part that it leaves out is the task's from then on, and is checked again."""
    weaker = replan(subtask("list the files"))
    script = {
        "Plan": [PARTS, weaker],
        "ExecutorStep": [write("a.txt", "one\n"), shell("ls"), shell("ls")],
        "FailureReport": moves(),
    }
    ended = await world.play(REQUEST, script, config=world.config(control={**ONCE, "max_replans": 1}))
    assert "b.txt exists" in [each.text for each in ended.all(Plan)[1].task_criteria]
    assert "b.txt exists" in ended.asked("Plan")[1].user
    assert (ended.directive, [each.criterion for each in ended.result.unmet]) == ("abandon", ["b.txt exists"])


async def test_what_another_part_then_meets_is_met(world: World) -> None:
    """A new subtask is held to what an earlier one has left unmet, and its own loop judges that."""
    script = {
        "Plan": [PARTS, replan(subtask("create the second file"))],
        "ExecutorStep": [write("a.txt", "one\n"), shell("ls"), shell("echo > b.txt")],
        "MergeReport": merged("Both files are there."),
    }
    ended = await world.play(REQUEST, script, config=world.config(control=ONCE))
    assert [each.text for each in ended.all(Plan)[1].subtasks[0].success_criteria] == ["b.txt exists"]  # pyright: ignore[reportAttributeAccessIssue]
    assert (ended.directive, ended.result.unmet) == ("accept", ())


async def test_what_never_ran_does_not_vanish(world: World) -> None:
    """A later part of a round that failed before it was never judged: a reply leaves it unfinished."""
    first = plan(
        subtask("make a.txt", exists("a.txt")), subtask("make b.txt", exists("b.txt"), sequence=2), criteria=["all"]
    )
    script = {"Plan": [first, reply("I cannot do it.")], "ExecutorStep": shell("echo no")}
    ended = await world.play(REQUEST, script, config=world.config(control=ONCE))
    unmet = {each.criterion: each.found for each in ended.result.unmet}
    assert unmet.keys() >= {"a.txt exists", "b.txt exists"}
    found = unmet["b.txt exists"]
    assert found is not None and found.found is Found.UNFINISHED
