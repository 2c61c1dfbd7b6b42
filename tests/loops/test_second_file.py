"""A file that a small model's program made of another one is believed when a second way gives the same."""

from __future__ import annotations

import pytest
from scenario import World, plan, python, shell, subtask

from artoo import Budgets
from artoo.contracts.execution import CorrectionSignal, SubTaskOutcome
from artoo.llm.request import ServerTraits
from artoo.loops.fast import second_file
from artoo.testing.replies import Scripted

CONVERT = "Convert the temperatures in temps.txt from Celsius to Fahrenheit and save them in the new file f.txt."
RIGHT = python("open('f.txt', 'w').write(''.join(f'{float(x) * 9 / 5 + 32:.1f}\\n' for x in open('temps.txt')))")
WRONG = python("open('f.txt', 'w').write(''.join(f'{float(x) * 9 / 5:.1f}\\n' for x in open('temps.txt')))")
PRINTED = shell("""awk '{printf "%.1f\\n", $1 * 9 / 5 + 32}' temps.txt""")
PRINTED_AGAIN = python("for x in open('temps.txt'):\n    print(f'{float(x) * 1.8 + 32:.1f}')")
SAVED_AGAIN = shell("""awk '{printf "%.1f\\n", $1 * 9 / 5 + 32}' temps.txt > f.txt""")
BROKEN = shell("awk '{print' temps.txt")
BROKEN_TOO = python("print(open('temps.txt').read()")
MADE = "written: "


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model is known to be a small one."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))


async def first_outcome(world: World, *steps: Scripted) -> tuple[SubTaskOutcome, list[CorrectionSignal]]:
    world.file("temps.txt", "0\n100\n")
    script = {"Plan": plan(subtask("convert all of the temperatures", tool="python")), "ExecutorStep": list(steps)}
    ended = await world.play(CONVERT, script, options=world.options(budgets=Budgets(calls=1 + len(steps))))
    return ended.all(SubTaskOutcome)[0], ended.all(CorrectionSignal)


@pytest.mark.parametrize("second", [PRINTED, SAVED_AGAIN])
async def test_two_ways_with_the_same_lines_are_believed(world: World, second: Scripted) -> None:
    """Printed or saved once more, the same content confirms the first; the result is the first one's."""
    outcome, corrections = await first_outcome(world, RIGHT, second)
    assert outcome.status == "matched" and outcome.output.startswith(MADE)
    assert [each.failed_criterion for each in corrections] == [second_file.SAME_CONTENT]
    assert (world.project / "f.txt").read_text() == "32.0\n212.0\n"


async def test_a_wrong_file_that_two_ways_contradict_is_not_believed(world: World) -> None:
    """The file is there and has the form that was asked for, and the task says that it is not right."""
    outcome, corrections = await first_outcome(world, WRONG, PRINTED, PRINTED_AGAIN)
    assert outcome.status == "failed" and len(corrections) == 2
    assert "two other ways gave another content than f.txt has" in (outcome.failure_reason or "")


async def test_a_file_that_is_saved_right_in_the_end_is_believed(world: World) -> None:
    """A second way that saves replaces the file; a third that agrees with it settles the matter."""
    outcome, _ = await first_outcome(world, WRONG, SAVED_AGAIN, PRINTED_AGAIN)
    assert outcome.status == "matched"
    assert (world.project / "f.txt").read_text() == "32.0\n212.0\n"


async def test_a_file_that_nobody_could_check_stands(world: World) -> None:
    """When no second way can be carried out, nothing speaks against the first."""
    outcome, _ = await first_outcome(world, RIGHT, BROKEN, BROKEN_TOO)
    assert outcome.status == "matched" and outcome.output.startswith(MADE)


async def test_other_models_are_believed_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is not known to be small does its work once."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: False))
    outcome, corrections = await first_outcome(world, RIGHT)
    assert (outcome.status, corrections) == ("matched", [])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a \nb\n\n", "a\nb", True),
        ("a\nb", "b\na", False),
        (" a", "a", False),
        ("", "", True),
    ],
)
def test_contents_are_compared_line_by_line(one: str, other: str, same: bool) -> None:
    """Order and indentation count; space at the ends of lines and empty last lines do not."""
    assert second_file.same(one, other) == same
