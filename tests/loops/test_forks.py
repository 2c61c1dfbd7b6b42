"""Parallel subtasks work in forks of the task's view, and the dispatcher joins them."""

from __future__ import annotations

from scenario import World, matches, plan, shell, subtask

from artoo.contracts.plan import Joined
from artoo.contracts.roles import Role
from artoo.contracts.solution import ReplanRequest
from artoo.testing import Asked
from artoo.testing.replies import Scripted


async def test_two_that_leave_one_file_differently_are_a_conflict(world: World) -> None:
    """Neither sees the other's work; the conflict is on the stream, the planner answers for it, and plans anew."""

    def model(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            if asked.number == 1:
                return plan(
                    subtask("write the red one", matches("red"), tool="shell"),
                    subtask("write the blue one", matches("blue"), tool="python"),
                )
            return plan(subtask("write the green one", matches("green"), tool="shell"))
        if "green" in asked.user:
            return shell("echo green > a.txt; cat a.txt")
        colour = "red" if "red one" in asked.user else "blue"
        return shell(f"test ! -e a.txt && echo {colour} > a.txt; cat a.txt")

    ended = await world.play("Do all of it.", model)
    joins = ended.all(Joined)
    assert [len(each.conflicts) for each in joins[:2]] == [1, 0]
    assert joins[0].conflicts[0].path == str(world.project / "a.txt")
    replan = ended.all(ReplanRequest)[0]
    unmet = [verdict for verdict in replan.task_verdicts if verdict.verdict == "fail"]
    assert str(world.project / "a.txt") in unmet[-1].criterion and unmet[-1].accountable is Role.PLANNER
