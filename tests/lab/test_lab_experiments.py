"""Experiments run whole, small, and their pages say what came out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from lab_command import run_lab

from artoo.runtime.config.model import Control
from lab.catalogue import NAMES, PUBLIC, experiment, experiments
from lab.conducting import Order, Piece, Ran, conduct, run_piece
from lab.experiment import Claim, Finding, Outcome
from lab.experiments import sensitivity
from lab.experiments.team import Learnt
from lab.report import RESULTS, TABLE, keep, page

ROOT = Path(__file__).parents[2]
SHORT = (7, 8)
"""Two seeds."""


def quiet(_: str) -> None:
    """Nobody listens."""


def test_every_claim_says_what_would_refute_it() -> None:
    """And no two experiments have one name."""
    for name, each in zip(NAMES, experiments(), strict=True):
        assert each.name == name and each.real and each.simulated
        assert each.claims and all(claim.text and claim.refuted_by for claim in each.claims)


LONG = ("structure", "stop", "control", "terms")


@pytest.mark.parametrize("name", ["flight", *(pytest.param(name, marks=pytest.mark.torture) for name in LONG)])
def test_an_experiment_judges_every_claim(name: str, tmp_path: Path) -> None:
    """From a handful of jobs: one finding a claim, a page that links tables and pictures, and the table."""
    ran = conduct(Order(name, tasks=2, seeds=SHORT), told=quiet)
    assert {each.claim for each in ran.outcome.findings} == set(experiment(name).claims)
    assert [len(each) for each in ran.by_seed] == [len(ran.outcome.findings)] * 2
    written = {path.name for path in keep(tmp_path, ran)}
    assert {f"{name}.md", RESULTS, TABLE} <= written
    text = (tmp_path / f"{name}.md").read_text()
    assert all(f"]({each.name}.svg)" in text and f"{each.name}.svg" in written for each in ran.outcome.pictures)
    assert all(claim.text in (tmp_path / TABLE).read_text() for claim in experiment(name).claims)
    assert "with each seed alone it holds in" in text and "Simulated: models, tools" in text


def test_a_life_is_lived_with_a_real_store() -> None:
    """A life of a hundred jobs goes through a store on disk, job by job."""
    piece = Piece("memory", "memory", 0, 1, 5)
    assert len(run_piece(piece)) == 100


def test_a_team_learns_a_trap_once() -> None:
    """With one memory a team knows a trap earlier than with ten."""
    (one,), (own,) = (run_piece(Piece("team", name, 0, 1, 5)) for name in ("one memory", "a memory each"))
    assert isinstance(one, Learnt) and isinstance(own, Learnt)
    assert 0 < one.until < own.until and one.falls < own.falls


def test_what_was_run_is_kept_when_another_is_run(tmp_path: Path) -> None:
    """The table has both; the second run does not need the first one's rows."""
    for name in ("structure", "stop"):
        found = tuple(Finding(each, True, "x") for each in experiment(name).claims)
        keep(tmp_path, Ran(name, 2, SHORT[:1], 0.0, 0.0, Outcome(found, ())))
    assert [each["name"] for each in json.loads((tmp_path / RESULTS).read_text())] == ["structure", "stop"]
    assert run_lab(["results", "--out", str(tmp_path)]) == 0
    assert run_lab(["results", "--out", str(tmp_path / "nothing")]) == 2


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """Finished pieces are read back and not run again; two processes find the same as one."""
    order = Order("flight", tasks=1, seeds=SHORT[:1], kept=tmp_path)
    ran = conduct(order, told=quiet)
    pieces = sorted(tmp_path.iterdir())
    pieces[0].unlink()
    assert conduct(order, told=quiet).outcome == ran.outcome
    assert conduct(replace(order, kept=None), jobs=2, told=quiet).outcome == ran.outcome


def test_pieces_make_the_same_as_the_whole() -> None:
    """In how many pieces jobs are run changes nothing."""
    whole = run_piece(Piece("stop", "faulty: δ = 0.3", 0, 4, 9))
    assert whole == [
        *run_piece(Piece("stop", "faulty: δ = 0.3", 0, 1, 9)),
        *run_piece(Piece("stop", "faulty: δ = 0.3", 1, 4, 9)),
    ]


def test_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """`list` names all, `run` prints a page, a name that there is not is a mistake of usage."""
    assert run_lab(["list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{each.name}: {each.title}" in listed for each in experiments())
    assert run_lab(["run", "flight", "--tasks", "2", "--seed", "3", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"# {experiment('flight').title}\n")
    assert run_lab(["run", "nothing"]) == 2
    assert run_lab(["run", PUBLIC[0]]) == 2


def test_every_value_of_the_sensitivity_is_one_that_a_person_can_set() -> None:
    """A value that the configuration refuses says nothing about the law that it runs."""
    for h in sensitivity.VALUES.values():
        numbers = {name.rstrip("_"): value for name, value in asdict(h).items()}
        control = Control.model_validate(numbers)
        assert replace(control.hyperparameters(), time_budget_ms=control.time_budget_ms) == h


def test_the_pages_are_of_the_experiments_that_there_are() -> None:
    """Every claim that the code states is on its page as it is, and no refutation stands without what followed."""
    folder = ROOT / "docs" / "lab"
    kept = {each["name"]: each for each in json.loads((folder / RESULTS).read_text())}
    assert set(kept) == set(NAMES)
    for each in experiments():
        text = (folder / f"{each.name}.md").read_text()
        assert all(claim.text in text and claim.refuted_by in text for claim in each.claims)
        followed = {claim.text: claim.followed for claim in each.claims}
        for claim in kept[each.name]["claims"]:
            assert claim["holds"] or followed[claim["text"]], f"{each.name}: nothing followed from: {claim['text']}"
            assert claim["holds"] or f"what followed: {followed[claim['text']]}" in text


def test_a_page_says_where_nothing_followed_yet() -> None:
    """A fresh refutation is not hidden behind an old sentence, nor a claim that holds behind any."""
    fresh, mended = Claim("a", "b"), Claim("c", "d", "e")
    found = (Finding(fresh, False, "x"), Finding(mended, False, "y"), Finding(mended, True, "z"))
    text = page(Ran("stop", 1, (1,), 0.0, 0.0, Outcome(found, ())))
    assert "- seen: x\n- what followed: nothing yet" in text and "- seen: y\n- what followed: e" in text
    assert text.count("what followed") == 2
