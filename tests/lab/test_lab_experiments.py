"""Experiments run whole, small, and their pages say what came out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from lab_command import run_lab

from artoo.runtime.config.model import Control
from lab import conducting
from lab.catalogue import EXPERIMENTS, experiment
from lab.cells import in_both_worlds
from lab.conducting import Order, Piece, Ran, conduct, conduct_all, run_piece
from lab.experiment import Claim, Finding, Outcome
from lab.experiments import sensitivity
from lab.laws import Arm, Law
from lab.report import RESULTS, SUMMARY, keep, page, state_claims
from lab.teams import Learnt

ROOT = Path(__file__).parents[2]


def quiet(_: str) -> None:
    """Nobody listens."""


def test_every_claim_says_what_would_refute_it() -> None:
    """And no two experiments have one name."""
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)
    for each in EXPERIMENTS:
        assert each.claims and all(claim.text and claim.refuted_by for claim in each.claims)
        assert each.real and each.simulated


LONG = ("control", "terms")
"""Baselines are tuned first, which takes a minute or two."""


@pytest.mark.parametrize(
    "name", ["structure", "stop", *(pytest.param(name, marks=pytest.mark.torture) for name in LONG)]
)
def test_an_experiment_judges_every_claim(name: str, tmp_path: Path) -> None:
    """From a handful of jobs: one finding a claim, tables, pictures, a page that links them, and the summary."""
    ran = conduct(Order(name, tasks=3), told=quiet)
    assert {each.claim for each in ran.outcome.findings} == set(experiment(name).claims)
    written = {path.name for path in keep(tmp_path, ran)}
    assert {f"{name}.md", RESULTS, SUMMARY} < written
    text = (tmp_path / f"{name}.md").read_text()
    assert all(
        f"]({picture.name}.svg)" in text and f"{picture.name}.svg" in written for picture in ran.outcome.pictures
    )
    assert all(claim.text in (tmp_path / SUMMARY).read_text() for claim in experiment(name).claims)


def test_a_life_is_lived_with_a_real_store() -> None:
    """A hundred jobs with memory: what worked is preferred, and the same seed lives the same life again."""
    piece = Piece("memory", "memory", 0, 1, 5)
    life = run_piece(piece)
    assert len(life) == 100
    assert life == run_piece(piece)


def test_a_team_learns_a_trap_once() -> None:
    """With one memory a team knows a trap earlier than with ten; the same seed learns the same again."""
    (one,), (own,) = (run_piece(Piece("team", name, 0, 1, 5)) for name in ("one memory", "a memory each"))
    assert isinstance(one, Learnt) and isinstance(own, Learnt)
    assert 0 < one.until < own.until and one.falls < own.falls
    assert [one] == run_piece(Piece("team", "one memory", 0, 1, 5))


def test_what_was_run_is_kept_when_another_is_run(tmp_path: Path) -> None:
    """The summary has both; the second run does not need the first one's rows."""
    for name in ("structure", "stop"):
        keep(tmp_path, conduct(Order(name, tasks=2), told=quiet))
    assert [each["name"] for each in json.loads((tmp_path / RESULTS).read_text())] == ["structure", "stop"]
    waits = "Not run: control, terms, memory, team, sensitivity, tuning, claims, commands, injections, blame."
    assert waits in (tmp_path / SUMMARY).read_text()
    waiting = (tmp_path / "memory.md").read_text()
    assert "Not run yet" in waiting and all(claim.refuted_by in waiting for claim in experiment("memory").claims)


def test_what_two_experiments_share_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal cells of any name are run for the first that needs them; everybody gets the rows."""
    run, asked = conducting.run_piece, list[Piece]()

    def counted(piece: Piece) -> list[object]:
        asked.append(piece)
        return run(piece)

    monkeypatch.setattr(conducting, "run_piece", counted)
    first, second = conduct_all([Order("stop", tasks=2), Order("stop", tasks=2)], told=quiet)
    assert first.outcome == second.outcome
    assert len(asked) == len(experiment("stop").cells())
    named = (in_both_worlds([Arm(name, Law)])[f"calm: {name}"] for name in ("one", "other"))
    assert len({each.alike for each in named}) == 1


def test_two_processes_find_the_same_as_one() -> None:
    """And say how long processors have worked for it."""
    orders = [Order("stop", tasks=2)]
    (one,), (two,) = (conduct_all(orders, jobs=jobs, told=quiet) for jobs in (1, 2))
    assert one.outcome == two.outcome
    assert one.processor_seconds > 0 and two.processor_seconds > 0


def test_the_summary_says_what_it_took(tmp_path: Path) -> None:
    """On the clock and of processor time; of a run whose processor time was not measured, on the clock alone."""
    ran = replace(conduct(Order("stop", tasks=2), told=quiet), seconds=600.0, processor_seconds=960.0)
    keep(tmp_path, ran)
    said = (
        "What needs no data took 10 minutes on the clock and 16 of processor time, so on two processors at least 8."
    )
    assert said in (tmp_path / SUMMARY).read_text()
    (old,) = json.loads((tmp_path / RESULTS).read_text())
    del old["processor_seconds"]
    (tmp_path / RESULTS).write_text(json.dumps([old]))
    state_claims(tmp_path)
    assert "What needs no data took 10 minutes on the clock." in (tmp_path / SUMMARY).read_text()


def test_pieces_make_the_same_as_the_whole() -> None:
    """In what order and in how many pieces jobs are run changes nothing."""
    whole = run_piece(Piece("stop", "faulty: δ = 0.3", 0, 4, 9))
    assert whole == [
        *run_piece(Piece("stop", "faulty: δ = 0.3", 0, 1, 9)),
        *run_piece(Piece("stop", "faulty: δ = 0.3", 1, 4, 9)),
    ]


def test_the_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`list` names all, `run` prints a page, a name that there is not is a mistake of usage."""
    assert run_lab(["list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{each.name}: {each.title}" in listed for each in EXPERIMENTS)
    assert run_lab(["run", "structure", "--tasks", "2", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith("# What more agents cost\n")
    assert run_lab(["run", "nothing"]) == 2
    assert run_lab(["report", "nothing", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_every_value_of_the_sensitivity_is_one_that_a_person_can_set() -> None:
    """A value that the configuration refuses says nothing about the law that it runs."""
    for h in sensitivity.VALUES.values():
        numbers = {name.rstrip("_"): value for name, value in asdict(h).items()}
        control = Control.model_validate(numbers)
        assert replace(control.hyperparameters(), time_budget_ms=control.time_budget_ms) == h


def test_the_pages_are_of_the_experiments_that_there_are() -> None:
    """Every claim that the code states is on its page as it is: nobody rewords a claim after its run."""
    for each in EXPERIMENTS:
        text = (ROOT / "docs" / "lab" / f"{each.name}.md").read_text()
        assert all(claim.text in text and claim.refuted_by in text for claim in each.claims)


def test_no_refuted_claim_stands_without_what_followed() -> None:
    """A default that changed, or a claim that is withdrawn: in the code, on the page and in the summary."""
    folder = ROOT / "docs" / "lab"
    for kept in json.loads((folder / RESULTS).read_text()):
        followed = {claim.text: claim.followed for claim in experiment(kept["name"]).claims}
        for text in (claim["text"] for claim in kept["claims"] if not claim["holds"]):
            assert followed.get(text), f"{kept['name']}: nothing followed from the refutation of: {text}"
            assert f"what followed: {followed[text]}" in (folder / f"{kept['name']}.md").read_text()
            assert followed[text][1:] in (folder / SUMMARY).read_text()


def test_a_page_says_where_nothing_followed_yet() -> None:
    """A fresh refutation is not hidden behind an old sentence, nor a claim that holds behind any."""
    fresh, mended = Claim("a", "b"), Claim("c", "d", "e")
    found = (Finding(fresh, False, "x"), Finding(mended, False, "y"), Finding(mended, True, "z"))
    text = page(Ran("stop", 1, 1, 0.0, 0.0, Outcome(found, ())))
    assert "- seen: x\n- what followed: nothing yet" in text and "- seen: y\n- what followed: e" in text
    assert text.count("what followed") == 2


def test_a_page_says_what_is_real() -> None:
    """Nobody takes a simulated world for the real one."""
    text = page(conduct(Order("structure", tasks=2), told=quiet))
    assert "Simulated: models, tools" in text and "design/lab.md" in text
