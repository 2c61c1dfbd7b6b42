"""Two independent ways that must agree, within a subtask and over the rounds of a task."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from scenario import World, plan, python, shell, subtask

from artoo import Budgets
from artoo.contracts.execution import CallStatus, ExecutionResult, SubTaskOutcome, ToolCall
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.solution import PlanDirective
from artoo.loops.fast import second_look
from artoo.loops.fast.second_look import SecondLook
from artoo.testing.replies import Scripted

SUM = "What is the sum of the numbers in n.txt?"


def computed(output: str, tool: str = "python", attempt: int = 1) -> ExecutionResult:
    call = ToolCall(tool=tool, identity=(tool,), status=CallStatus.OK, output=output)
    return ExecutionResult(subtask_id="s", attempt=attempt, status="completed", output=output, tool_calls=(call,))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("42", "42.0", True),
        ("42", "The sum is 42", True),
        ("1,204", "1204", True),
        ("42", "43", False),
        ("none", "none", False),
        ("3 of 4", "3", True),
    ],
)
def test_answers_agree_by_their_figures(one: str, other: str, same: bool) -> None:
    """Words around a figure do not matter, in either order; no figures agree with nothing."""
    assert second_look.agree(one, other) is same
    assert second_look.agree(other, one) is same


def test_only_computed_figures_that_were_asked_for_are_looked_at_twice() -> None:
    """A count by glob, a text, and a request for no figure stand as they are."""
    assert second_look.deserved(SUM, computed("42"))
    assert not second_look.deserved(SUM, computed("42", tool="glob"))
    assert not second_look.deserved(SUM, computed("forty-two"))
    assert not second_look.deserved("Show n.txt", computed("42"))


def test_an_answer_of_an_earlier_round_confirms() -> None:
    """What an earlier round computed counts as a way of its own, and only the present result is delivered."""
    results = [computed("41"), computed("42")]
    assert second_look.confirmed(results, ()) is None
    assert second_look.confirmed(results, ("42.0",)) is results[1]
    assert second_look.confirmed([*results, computed("41.0")], ()) is results[0]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure is looked at twice, as a small model's are."""
    monkeypatch.setattr(SecondLook, "wanted", lambda self, *, small_model: True)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]


GOOD = python("print(sum(int(line) for line in open('n.txt')))")
ADDED_UP_ELSEWHERE = shell("python3 -c 'print(sum(map(int, open(\"n.txt\"))))'")
ADDED_UP = shell("awk '{s+=$1} END {print s}' n.txt")


def printed(number: int) -> Scripted:
    """A program that computes nothing."""
    return python(f"open('n.txt').read(); print({number})")


NO_SUM = shell("awk 'END {print 2}' n.txt")
OTHER_WRONG_WAYS: list[Scripted] = [shell("wc -l < n.txt"), printed(10), shell("tail -1 n.txt")]


async def sums(world: World, *rounds: list[Scripted]) -> list[SubTaskOutcome]:
    """Plays rounds of steps; returns their outcomes. After the first round, plans use the shell."""
    world.file("n.txt", "10\n20\n12\n")
    plans = [plan(subtask(SUM)), plan(subtask("add up with a command", tool="shell"))][: len(rounds)]
    options = world.options(budgets=Budgets(calls=sum(map(len, rounds)) + len(plans)))
    script: dict[str, Sequence[Scripted]] = {
        "Plan": plans,
        "ExecutorStep": [step for steps in rounds for step in steps],
    }
    return (await world.play(SUM, script, options=options)).all(SubTaskOutcome)


async def test_two_ways_that_agree_are_accepted(world: World, always: None) -> None:
    """The second way is asked of another program, and the figure stands."""
    (outcome,) = await sums(world, [GOOD, ADDED_UP])
    assert outcome.status == "matched" and outcome.output == "42" and outcome.unconfirmed == ()


async def test_a_figure_that_earlier_rounds_contradict_is_not_accepted(world: World, always: None) -> None:
    """Figures that all differ, most of them from the round before: the last one is not unrefuted."""
    first, second = await sums(
        world,
        [printed(1), NO_SUM, printed(5)],
        OTHER_WRONG_WAYS,
    )
    assert first.status == "failed" and first.unconfirmed == ("1", "2", "5")
    assert second.status == "failed" and second.unconfirmed == ("1", "2", "5", "3", "10", "12")


async def test_disagreement_is_no_fault_of_a_tool(world: World, always: None) -> None:
    """A round that ends without two ways that agree blocks nothing, teaches nothing against a tool, and the next
    round may use the same tools."""
    world.file("n.txt", "10\n20\n12\n")
    script: dict[str, Sequence[Scripted]] = {
        "Plan": [plan(subtask(SUM)), plan(subtask("add up with a command", tool="shell"))],
        "ExecutorStep": [GOOD, NO_SUM, printed(5), shell("awk '{s+=$1} END {print s}' n.txt")],
    }
    ended = await world.play(SUM, script)
    assert ended.directives == ["break_symmetry", "accept"] and ended.result.output == "42"
    (directive,) = ended.all(PlanDirective)
    assert directive.blocked_tools == () and directive.blocked_targets == ()
    first, second = ended.asked("Plan")
    assert "Must not use" not in second.user and "approach is wrong" not in second.user
    assert "No two ways gave the same figure" in second.user
    assert [each for each in ended.all(MemoryWritten) if each.sigma < 0] == []
    (open_verdict,) = [verdict for verdict in ended.verdicts if verdict.verdict == "fail"]
    assert open_verdict.criterion == second_look.TWO_WAYS_AGREE and open_verdict.blameless
    assert "Must not use" not in first.user


async def test_a_figure_that_an_earlier_round_gave_too_is_accepted(world: World, always: None) -> None:
    """The next round's first answer, if it agrees with one of the earlier ones, needs no second way."""
    outcomes = await sums(world, [GOOD, NO_SUM, printed(5)], [ADDED_UP_ELSEWHERE])
    assert [outcome.status for outcome in outcomes] == ["failed", "matched"]
    assert outcomes[1].output == "42"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.7", "10.0.0.7 with 12 requests", True),
        ('172.16.0.9 - - [03/Jun/2024:10:00:11 +0000] "GET /about" 200', "10.0.0.7", False),
        ("Lena", "lena.", True),
        ("Lena", "Ada", False),
        ("王芳", "王芳", True),
        ("", "Lena", False),
    ],
)
def test_names_agree_word_by_word(one: str, other: str, same: bool) -> None:
    """Which one it is: the same name, however much more is said around it."""
    assert second_look.agree(one, other, by_name=True) == same == second_look.agree(other, one, by_name=True)
