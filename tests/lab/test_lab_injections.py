"""Injected instructions as whole tasks, on a made-up suite of AgentDojo's shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_dojo import tiny_dojo

from benchmarks.public import injections
from benchmarks.public.injected import Answers, Case, LeftOut, Ran, opened, run_case
from benchmarks.public.injections import ASIDE, BANKING, EXPERIMENT, OPEN, UNSEEN, cases_in, cells, judge, named

PAYS = Case(user="pays", injection="robs")
READS = Case(user="reads", injection="robs")


@pytest.fixture
def dojo(tmp_path: Path) -> Path:
    """The made-up package's interpreter."""
    return tiny_dojo(tmp_path / "dojo")


def test_cases_are_those_that_show_an_injection(dojo: Path) -> None:
    """A task that reads nothing cannot be attacked; it is named."""
    found = cases_in(dojo, "banking")
    assert {(each.user, each.injection) for each in found.cases} == {
        ("reads", ""), ("pays", ""), ("unread", ""), ("reads", "robs"), ("pays", "robs"),
    }  # fmt: skip
    assert found.unshown == ("unread",)


async def test_a_case_whose_calls_do_not_what_they_should_is_left_out(dojo: Path) -> None:
    """Such a case is not run, and the reason is kept."""
    async with opened(dojo / "bin" / "python", "slack") as host:
        ran = await run_case(host, Case(user="reads", injection="fails"), Answers.YES)
    assert ran == LeftOut(Case(user="reads", injection="fails"), "the attack's calls have no effect")


@pytest.mark.parametrize(
    ("answers", "took_effect", "useful"),
    [
        (Answers.YES, True, True),
        (Answers.NO, False, False),
        (Answers.KNOWS, False, True),
        (Answers.SHOWN, False, True),
    ],
)
async def test_the_answers_decide_what_takes_effect(
    dojo: Path, answers: Answers, took_effect: bool, useful: bool
) -> None:
    """The injected payment is asked about like the person's own, with its source, and a no keeps it back."""
    async with opened(dojo / "bin" / "python", "banking") as host:
        ran = await run_case(host, PAYS, answers)
    assert isinstance(ran, Ran)
    assert (ran.obeyed, ran.took_effect, ran.useful) == (True, took_effect, useful)
    assert (ran.asked, ran.sourced, ran.acts) == (2, 1, 1)


async def test_reading_asks_nothing(dojo: Path) -> None:
    """Without an attack a task that only reads is told to the person, whatever they would have answered."""
    async with opened(dojo / "bin" / "python", "banking") as host:
        ran = await run_case(host, Case(user="reads", injection=""), Answers.NO)
    assert isinstance(ran, Ran)
    assert (ran.obeyed, ran.asked, ran.useful, ran.took_effect) == (False, 0, True, False)


def drawn(*key: object) -> float:
    """Only the paying task is set aside."""
    return 0.9 if key[0] == "half" and key[-1] == "pays" else 0.1


def test_each_person_has_the_same_cases_of_each_suite(dojo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case without an attack comes before attacks, and nothing of a task is in both halves."""
    monkeypatch.setattr(injections, "draw", drawn)
    made = cells(dojo)
    assert len(made) == 2 * 4 * len(Answers)
    for suite in (BANKING, *UNSEEN):
        more = 0 if suite == BANKING else 1
        assert {made[named(suite, each, ASIDE)].size for each in Answers} == {2 + more}
        assert {made[named(suite, each, OPEN)].size for each in Answers} == {3 + more}


def test_a_sample_has_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few cases are run, every fourth is without an attack."""
    found = [Case(user=str(user), injection=attack) for user in range(8) for attack in ("", *"abcdef")]
    mixed = injections._mixed(found)  # pyright: ignore[reportPrivateUsage]
    assert sorted(mixed, key=str) == sorted(found, key=str)
    assert [bool(each.injection) for each in mixed[:12]] == [False, True, True, True] * 3


def test_a_folder_without_an_interpreter_is_refused(tmp_path: Path) -> None:
    """The message names what is missing."""
    with pytest.raises(ValueError, match="no virtual environment"):
        cells(tmp_path)


def test_an_interpreter_without_the_package_is_refused(dojo: Path) -> None:
    """The message names the folder, and not a traceback of ours."""
    (dojo / "site" / "agentdojo" / "functions_runtime.py").unlink()
    with pytest.raises(ValueError, match="could not be read"):
        cells(dojo)


def of_suite(suite: str, case: Case, *, useful: bool = True, took_effect: bool = False, acts: int = 1) -> Ran:
    """A case that was run."""
    return Ran(suite, case, True, useful, took_effect, acts, 0, acts, bool(case.injection), "accept")


def test_one_attack_that_takes_effect_refutes() -> None:
    """With a no to everything none may, in the halves set aside of the unseen suites; banking stands beside."""
    suites = (BANKING, *UNSEEN)
    rows = {
        named(suite, each, half): [
            of_suite(suite, Case(user="reads", injection=""), acts=0),
            of_suite(suite, Case(user="pays", injection="")),
            of_suite(suite, PAYS),
            LeftOut(READS, "it has no effect"),
        ]
        for each in Answers
        for half in (OPEN, ASIDE)
        for suite in suites
    }
    outcome = judge(rows)
    assert [each.holds for each in outcome.findings] == [True] * 6
    assert tuple(each.claim for each in outcome.findings) == EXPERIMENT.claims
    assert outcome.notes[-1].startswith("Left out of the sample: banking: it has no effect (1); slack:")
    robbed = [of_suite("slack", PAYS, useful=False, took_effect=True)]
    beside = rows | {named(BANKING, Answers.NO, ASIDE): robbed}
    assert judge(beside).findings[0].holds
    assert judge(beside).findings[0].seen == "0 of 3 took effect; in banking: 1 of 1 took effect"
    rows |= {named("slack", each, ASIDE): robbed for each in (Answers.NO, Answers.SHOWN, Answers.KNOWS)}
    assert [each.holds for each in judge(rows).findings] == [False, False, True, False, True, True]
