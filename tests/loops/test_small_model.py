"""Runs of a model of 1.5 billion parameters, played again: work that was right is not thrown away any more."""

from __future__ import annotations

import pytest
from scenario import World, matches, plan, python, shell, subtask
from test_memory_in_tasks import megram, remember

from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.plan import Plan
from artoo.contracts.solution import PlanDirective
from artoo.contracts.tags import tool_pair
from artoo.llm.request import ServerTraits
from artoo.testing import Asked
from artoo.testing.replies import Scripted

POINTER = (
    "The file latest.txt contains the name of a data file in the directory data. "
    "What is the sum of the numbers in that data file?"
)
COPY = "What is the sum of the column amount in data/sales.csv? If that file is not usable, look for a copy of it."


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model is known to be a small one."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))


def added_up(path: str) -> Scripted:
    return python(f"with open('{path}') as file:\n    print(sum(int(line) for line in file))")


async def test_the_file_that_a_file_names_is_added_up(world: World) -> None:
    """The listing says which file is meant; an answer from another one is sent back with the right one named; and a
    wording of the answer that the planner made up is no criterion."""
    world.file("latest.txt", "mar.txt\n")
    for month, number in (("jan", 1), ("mar", 500), ("apr", 7)):
        world.file(f"data/{month}.txt", f"{number}\n10\n6\n")
    invented = matches("sum of numbers in data/apr.txt: (.+)", "sum of numbers in data/apr.txt")
    ended = await world.play(
        POINTER,
        {
            "Plan": plan(subtask("add up", invented, tool="python"), criteria=[matches("^[0-9]+$", "a figure")]),
            "ExecutorStep": [
                added_up("data/apr.txt"),
                added_up("data/mar.txt"),
                shell("awk '{s += $1} END {print s}' data/mar.txt"),
            ],
        },
    )
    assert ended.directive == "accept" and ended.result.output == "516"
    planned = ended.one(Plan)
    assert [criterion.text for criterion in planned.task_criteria] == ["the answer contains a number"]
    left_out = [reason.partition(":")[0] for reason in planned.left_out]
    assert left_out == ["a figure", "sum of numbers in data/apr.txt"]
    first, second, _ = ended.asked("ExecutorStep")
    assert "latest.txt names data/mar.txt" in first.user
    assert "First lines of data/mar.txt:\n500\n10\n6" in first.user
    assert "latest.txt names data/mar.txt, which was not read" in second.user


async def test_a_header_is_skipped_once_it_is_said_how(world: World) -> None:
    """A program that took a header for a number is shown with that line skipped; what is copied from there runs."""
    world.file("data/archive/sales.csv.bak", "id,amount\n1,13\n2,130\n")
    (world.project / "data" / "sales.csv").symlink_to("/mnt/nowhere/sales.csv")
    program = (
        "import csv\n\nwith open('data/archive/sales.csv.bak', newline='') as file:\n"
        "    reader = csv.reader(file)\n    total = sum(int(row[1]) for row in reader)\n    print(total)"
    )

    def step(asked: Asked) -> Scripted:
        _, shown, mended = asked.user.partition("The whole program is then:\n")
        if shown:
            return python(mended.strip())
        if "in another way" in asked.user:
            return shell("awk -F, 'NR > 1 {s += $2} END {print s}' data/archive/*.bak")
        return python(program)

    ended = await world.play(COPY, {"Plan": plan(subtask("add up", tool="python")), "ExecutorStep": step})
    assert ended.directive == "accept" and ended.result.output == "143"
    first, second = ended.all(CorrectionSignal)
    assert "data/archive/sales.csv.bak is a header (id,amount)" in first.what_to_do and not first.prior_tool_calls
    assert second.what_was_wrong == "the figure was computed in one way only"


async def test_one_failed_pipeline_does_not_ban_its_programs(world: World) -> None:
    """grep stays usable in a task after one in which a pipeline with it failed; the prompt warns of it."""
    world.file("a.txt", "x\ny\n")
    await remember(world, megram(tool_pair("shell:grep"), -1.0))
    by_script = python("print(sum('x' in line for line in open('a.txt')))")
    ended = await world.play(
        "How many lines of a.txt contain the letter x?",
        {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": [shell("grep -c x a.txt"), by_script]},
    )
    assert ended.directive == "accept" and ended.one(Plan).must_not.tools == ()
    assert "- shell:grep went wrong before" in ended.asked("Plan")[0].user


async def test_what_a_block_refused_is_not_blamed_again(world: World) -> None:
    """Commands that a block turned away block no target, teach nothing, and leave the other tools open."""
    world.file("a.txt", "x\ny\n")
    await remember(world, *(megram(tool_pair("shell:grep"), -1.0) for _ in range(3)))
    refused: list[Scripted] = [shell(f"grep -c x a.txt | awk '{{print ${n}}}'") for n in (0, 1)]
    ended = await world.play(
        "How many lines of a.txt contain the letter x?",
        {
            "Plan": [plan(subtask("count", tool="shell")), plan(subtask("count with a script", tool="python"))],
            "ExecutorStep": [
                refused[0],
                python("open('gone.txt')"),
                refused[1],
                python("print(sum('x' in line for line in open('a.txt')))"),
                shell("awk '/x/ {n += 1} END {print n}' a.txt"),
            ],
        },
    )
    first, second = ended.all(SubTaskOutcome)
    assert first.status == "failed" and second.status == "matched"
    (directive,) = ended.all(PlanDirective)
    assert not any("grep" in target or "grep" in identity for identity, target in directive.blocked_targets)
    assert not {"shell", "shell:grep", "shell:awk"} & set(directive.blocked_tools)
    blamed = {each.space for each in ended.all(MemoryWritten) if each.sigma < 0}
    assert not blamed & {"tool:shell:grep", "tool:shell:awk", "tool:shell"}
