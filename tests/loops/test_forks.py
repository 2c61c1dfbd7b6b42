"""Parallel subtasks work in forks of the task's view, and the dispatcher joins them."""

from __future__ import annotations

import subprocess
from dataclasses import replace

from scenario import Each, Ended, Script, World, matches, merged, plan, replan, shell, subtask

from artoo import Artoo
from artoo.contracts.criteria import NO_FILE_IN_COMMON
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.findings import Found
from artoo.contracts.plan import Joined
from artoo.contracts.roles import Role
from artoo.contracts.solution import PlanDirective, ReplanRequest
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
    assert unmet[-1].criterion == NO_FILE_IN_COMMON and unmet[-1].accountable is Role.PLANNER
    assert str(world.project / "a.txt") in unmet[-1].evidence and "write the red one" in unmet[-1].evidence


MIDDLE, LAST = "add middle() and commit it", "add last() and commit it"
LOST, REDONE = "48151", "62342"
"""What the first attempt at the part that is lost puts out, and the second."""


def begin(world: World) -> None:
    """The project is a repository with one file."""
    world.file("calc.py", "def first(): pass\n")
    start = "git init -q && git add . && git -c user.name=a -c user.email=a@example.org commit -qm start"
    subprocess.run(start, shell=True, cwd=world.project, check=True)


def commit(name: str, number: str) -> Scripted:
    """A step that adds a function, commits it, and shows what there is then."""
    git = "git -c user.name=a -c user.email=a@example.org"
    made = f"echo 'def {name}(): pass' >> calc.py; {git} commit -qam {name}"
    return shell(f"{made}; {git} log --format=%s; cat calc.py; echo {number}")


async def played(world: World, answer: str = "Both are there.", *, again: bool = True) -> Ended:
    """Two parallel parts commit in one repository; in the second round the lost one is planned `again`, or none."""
    begin(world)
    tries = iter((LOST, REDONE))

    def model(asked: Asked) -> Scripted:
        if asked.contract == "Plan" and asked.number == 1:
            parts = subtask(LAST, matches("last")), subtask(MIDDLE, matches("middle"))
            return plan(*parts, criteria=["both functions are there"])
        if asked.contract == "Plan":
            return replan(subtask(MIDDLE, matches("middle"))) if again else {}
        if asked.contract == "ExecutorStep":
            intent = asked.user.rpartition("Your subtask:\n")[2].partition("\n")[0]
            return commit("last", "1") if intent == LAST else commit("middle", next(tries))
        assert asked.contract in ("MergeReport", "FailureReport")
        return merged(answer, ("pass", "def middle")) if asked.contract == "MergeReport" else {"next_moves": []}

    return await world.play("Add last() and middle(), and commit each.", model)


async def test_what_was_lost_in_the_join_is_done_again(world: World) -> None:
    """Of two commits in a repository one is lost: it has failed, no prompt has it as done, the plan hears why, and
    the next round makes it anew on top of the other.
    """
    ended = await played(world)
    outcomes = ended.all(ReplanRequest)[0].outcomes
    assert [(each.intent, each.status) for each in outcomes] == [(LAST, "matched"), (MIDDLE, "failed")]
    (lost,) = outcomes[1].criteria_verdicts
    assert lost.reason is not None and lost.reason.found is Found.CONFLICT
    assert (
        LAST in lost.evidence
        and "calc.py" in lost.evidence
        and not any(each.subtask_id in lost.evidence for each in outcomes)
    )
    directive = ended.one(PlanDirective)
    assert [each.intent for each in directive.standing] == [LAST]
    assert not directive.blocked_tools and not directive.blocked_targets
    told = ended.asked("Plan")[1].user.partition("What must change:\n")[2]
    assert told.startswith("Keep the method, but let parts that change the same files follow one another")
    assert f"plan it after what stands: {MIDDLE}\n" in told and f"\n- {LAST}: " in told
    assert not any(LOST in asked.user for asked in ended.requests)
    assert ended.directive == "accept" and ended.result.done == (LAST, MIDDLE)
    functions = "".join(f"def {name}(): pass\n" for name in ("first", "last", "middle"))
    assert ended.calls[-1].output == f"middle\nlast\nstart\n{functions}{REDONE}\n"


async def test_what_was_lost_in_the_join_grounds_no_answer(world: World) -> None:
    """An answer that holds what only the lost work put out is refused, and the results stand for themselves."""
    ended = await played(world, f"Both are there, {LOST}.")
    assert len(ended.asked("MergeReport")) == 2
    assert LOST not in ended.result.output and REDONE in ended.result.output


async def test_where_the_lost_part_is_not_done_again_the_task_fails(world: World) -> None:
    """No plan comes for it: it is told as unmet, and not as done."""
    ended = await played(world, again=False)
    assert ended.directive == "abandon" and ended.result.done == (LAST,)
    assert LOST not in ended.result.output


async def test_what_was_not_joined_when_the_task_stopped_is_not_done(world: World) -> None:
    """A part that has ended waits for its sibling, and the person leaves: its file is nowhere; so it is told."""
    steps = Each.of(
        write=shell("echo made > a.txt; echo it is made"),
        look=shell("echo it is seen"),
        wait=replace(shell("true"), delay=20.0),
    )
    parts = (subtask(intent, matches(r"it is")) for intent in ("write", "look", "wait"))
    script: Script = {"Plan": plan(*parts, criteria=["all of it"]), "ExecutorStep": steps}
    running = {"write", "look"}

    async def leave(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, SubTaskOutcome):
            running.remove(envelope.payload.intent)
            if not running:
                artoo.interrupt()

    ended = await world.play("Do it.", script, during=leave)
    assert ended.result.stopped_by == "interrupted" and not ended.all(Joined)
    assert ended.result.output == "it is seen" and ended.result.done == ("look",)
