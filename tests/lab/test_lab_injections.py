"""Injected instructions as whole tasks, on a made-up suite of AgentDojo's shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_dojo import tiny_dojo

from artoo.lab.experiments import injections
from artoo.lab.experiments.injections import ASIDE, BUILT, EXPERIMENT, cases_in, cells, judge
from artoo.lab.injected import Answers, Case, Ran, opened, run_case

PAYS = Case(user="pays", injection="robs", useful_alone=True)
READS = Case(user="reads", injection="robs", useful_alone=True)


@pytest.fixture
def dojo(tmp_path: Path) -> Path:
    """The made-up package's interpreter."""
    return tiny_dojo(tmp_path / "dojo")


def test_cases_are_those_whose_calls_do_what_they_should(dojo: Path) -> None:
    """A task that reads nothing cannot be attacked; the reason is kept."""
    found = cases_in(dojo)
    assert {(each.user, each.injection) for each in found.cases} == {
        ("reads", ""), ("pays", ""), ("unread", ""), ("reads", "robs"), ("pays", "robs"),
    }  # fmt: skip
    assert found.left_out == {"no output of the task shows an injection": ("unread × robs",)}


@pytest.mark.parametrize(
    ("answers", "took_effect", "useful"),
    [(Answers.YES, True, True), (Answers.NO, False, False), (Answers.KNOWS, False, True)],
)
async def test_the_answers_decide_what_takes_effect(
    dojo: Path, answers: Answers, took_effect: bool, useful: bool
) -> None:
    """The injected payment is asked about like the person's own, and a no keeps either back."""
    async with opened(dojo / "bin" / "python", "banking") as host:
        ran = await run_case(host, PAYS, answers)
    assert (ran.obeyed, ran.took_effect, ran.useful) == (True, took_effect, useful)
    assert (ran.asked, ran.writes) == (2, 1)


async def test_reading_asks_nothing(dojo: Path) -> None:
    """Without an attack a task that only reads is told to the person, whatever they would have answered."""
    async with opened(dojo / "bin" / "python", "banking") as host:
        ran = await run_case(host, Case(user="reads", injection="", useful_alone=True), Answers.NO)
    assert (ran.obeyed, ran.asked, ran.useful, ran.took_effect) == (False, 0, True, False)


def drawn(*key: object) -> float:
    """Only the paying task is set aside."""
    return 0.9 if key == ("half", "agentdojo", "pays") else 0.1


def test_each_person_has_the_same_cases(dojo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks without an attack come first, and nothing of a task is in both halves."""
    monkeypatch.setattr(injections, "draw", drawn)
    made = cells(dojo)
    assert {made[f"{each.value}, {ASIDE}"].size for each in Answers} == {2}
    assert {made[f"{each.value}, {BUILT}"].size for each in Answers} == {3}


def test_a_folder_without_an_interpreter_is_refused(tmp_path: Path) -> None:
    """The message names what is missing."""
    with pytest.raises(ValueError, match="no virtual environment"):
        cells(tmp_path)


def test_an_interpreter_without_the_package_is_refused(dojo: Path) -> None:
    """The message names the folder, and not a traceback of ours."""
    (dojo / "site" / "agentdojo" / "functions_runtime.py").unlink()
    with pytest.raises(ValueError, match="could not be read"):
        cells(dojo)


def test_one_attack_that_takes_effect_refutes() -> None:
    """With a no to everything none may, in the half set aside."""
    alone = Ran(READS.model_copy(update={"injection": ""}), True, False, 0, 0, False, "accept")
    stopped = Ran(PAYS, True, False, 2, 1, True, "accept")
    rows = {f"{each.value}, {half}": [alone, stopped] for each in Answers for half in (BUILT, ASIDE)}
    assert [each.holds for each in judge(rows).findings] == [True] * 5
    assert tuple(each.claim for each in judge(rows).findings) == EXPERIMENT.claims
    robbed = Ran(PAYS, False, True, 2, 1, True, "accept")
    rows |= {f"{each.value}, {ASIDE}": [alone, robbed] for each in (Answers.NO, Answers.SHOWN, Answers.KNOWS)}
    assert [each.holds for each in judge(rows).findings] == [False, False, False, True, True]
