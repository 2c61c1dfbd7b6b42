"""Runs of a model of 1.5 billion parameters, played again: work that was right is not thrown away any more."""

from __future__ import annotations

import pytest
from scenario import World, python, shell
from test_memory_in_tasks import megram, remember

from artoo.contracts.criteria import Assurance
from artoo.contracts.execution import CorrectionSignal, ExecutionResult, SubTaskOutcome
from artoo.contracts.plan import Plan
from artoo.contracts.tags import tool_pair
from artoo.llm.wires.how import ServerTraits
from artoo.testing.replies import Scripted

SUM = "What is the sum of mar.txt?"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model is known to be a small one."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))


def added_up(path: str) -> Scripted:
    return python(f"with open('{path}') as file:\n    print(sum(int(line) for line in file))")


async def test_two_ways_agree(world: World) -> None:
    """A small model's figure is worked out a second time, in a world of its own; then it is agreed."""
    world.file("mar.txt", "500\n10\n6\n")
    steps = [added_up("mar.txt"), shell("awk '{s += $1} END {print s}' mar.txt")]
    ended = await world.play(SUM, {"ExecutorStep": steps})
    outcome = ended.one(SubTaskOutcome)
    assert (outcome.output, outcome.assurance, outcome.open) == ("516", Assurance.AGREED, ())
    _, second = ended.asked("ExecutorStep")
    assert "a whole program in a ```bash block" in second.user and "open('mar.txt')" not in second.user


@pytest.mark.parametrize("off", [(), ("brief",)])
async def test_the_tree_is_shown_to_who_comes_after(world: World, off: tuple[str, ...]) -> None:
    """A small model's first attempt sees the named file alone, the next attempt and the second way all."""
    world.file("mar.txt", "500\n10\n6\n")
    steps = [added_up("april.txt"), shell("awk '{s += $1} END {print s}' mar.txt"), added_up("mar.txt")]
    ended = await world.play(SUM, {"ExecutorStep": steps}, config=world.config(control={"without": off}))
    assert ended.one(SubTaskOutcome).assurance is Assurance.AGREED
    shown = [asked.user for asked in ended.asked("ExecutorStep")]
    assert ["All files in the project directory" in text for text in shown] == [bool(off), True, True]
    assert all("All of mar.txt:\n500" in text for text in shown)


async def test_what_nothing_confirms_is_unverified(world: World) -> None:
    """A second way that fails decides nothing: the first is delivered, and stands open."""
    world.file("mar.txt", "500\n10\n6\n")
    steps = [added_up("mar.txt"), shell("cat gone.txt")]
    ended = await world.play(SUM, {"ExecutorStep": steps})
    outcome = ended.one(SubTaskOutcome)
    assert (outcome.status, outcome.output, outcome.assurance) == ("matched", "516", Assurance.UNVERIFIED)
    assert outcome.open


async def test_files_are_compared_by_what_is_in_them(world: World) -> None:
    """Two ways that make one file agree when it holds the same; nothing of the second way stays."""
    world.file("names.txt", "bo\nan\n")
    steps = [shell("sort names.txt > sorted.txt"), python("open('sorted.txt', 'w').write('an\\nbo')")]
    ended = await world.play("Sort names.txt into sorted.txt", {"ExecutorStep": steps})
    assert ended.one(SubTaskOutcome).assurance is Assurance.AGREED
    assert (world.project / "sorted.txt").read_text(encoding="utf-8") == "an\nbo\n"


async def test_one_failed_pipeline_does_not_ban_its_programs(world: World) -> None:
    """grep stays usable in a task after one in which a pipeline with it failed, and no prompt speaks of it."""
    world.file("a.txt", "x\ny\n")
    await remember(world, *(megram(tool_pair("shell:grep"), -1.0) for _ in range(3)))
    by_script = python("print(sum('x' in line for line in open('a.txt')))")
    ended = await world.play(
        "How many lines of a.txt contain the letter x?", {"ExecutorStep": [shell("grep -c x a.txt"), by_script]}
    )
    assert ended.directive == "accept" and ended.one(Plan).must_not.tools == ()
    assert not any("grep" in asked.user for asked in ended.asked("ExecutorStep"))


async def test_a_program_that_says_what_is_missing_has_done_its_work(world: World) -> None:
    """Three attempts that end with what is not there say that it cannot be."""
    world.file("feb.txt", "1\n")
    says = [python(f"print('{word} mar.txt')\nraise SystemExit(1)") for word in ("no", "nowhere", "never")]
    ended = await world.play(SUM, {"ExecutorStep": says})
    assert len(ended.all(CorrectionSignal)) == 2 and ended.directive == "abandon"


async def test_a_program_that_says_no_and_that_it_comes_back_to_is_its_word(world: World) -> None:
    """What another program did in between is nothing against it: the person reads what is missing."""
    world.file("feb.txt", "1\n")
    says = python("print('no bill for March')\nraise SystemExit(1)")
    ended = await world.play(SUM, {"ExecutorStep": [says, shell("if then"), says]})
    last = ended.all(ExecutionResult)[-1]
    assert (last.status, last.output) == ("cannot", "no bill for March") and len(last.tool_calls) == 3
    assert ended.directive == "abandon" and "no bill for March" in ended.result.output


async def test_two_ways_to_nothing_confirm_nothing(world: World) -> None:
    """Both looked for what is not there, and wrote a zero."""
    world.file("mar.txt", "500\n10\n6\n")
    steps = [shell("echo 0 > sum.txt"), python("open('sum.txt', 'w').write('0')")]
    ended = await world.play("Write the sum of 2025 into sum.txt", {"ExecutorStep": steps})
    assert ended.all(SubTaskOutcome)[-1].assurance is not Assurance.AGREED


async def test_a_way_that_makes_a_directory_can_agree(world: World) -> None:
    """What is compared is the files."""
    steps = [
        shell("mkdir -p a/b && echo x > a/b/n.txt"),
        python("import os\nos.makedirs('a/b')\nopen('a/b/n.txt', 'w').write('x')"),
    ]
    ended = await world.play("Make a/b/n.txt with the letter x in it", {"ExecutorStep": steps})
    assert ended.one(SubTaskOutcome).assurance is Assurance.AGREED
