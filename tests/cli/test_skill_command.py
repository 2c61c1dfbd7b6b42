"""`artoo skill`: what is offered here, and answers that can be given and taken back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from artoo.cli.main import main
from artoo.runtime.app.skill_selection import Agreed

TEXT = "---\nname: greeting\ndescription: Say hello as we do here.\n---\nSay hello.\n"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["skill", *words])
    out = capsys.readouterr()
    return code, out.out + out.err


def test_answers_are_given_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A project's skill is listed as it stands, agreed to exactly as it is, and forgotten by name and by hash."""
    place = tmp_path / "project" / ".artoo" / "skills" / "greeting"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(TEXT)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(home))
    monkeypatch.chdir(tmp_path / "project")
    assert "not asked yet greeting" in said(capsys, "list")[1]
    assert said(capsys, "accept", "greeting")[0] == 0
    assert "agreed greeting" in said(capsys, "list")[1]
    digest, yes, _ = Agreed(home).kept()[0]
    assert yes
    assert digest[:12] in said(capsys, "list", "--all")[1]
    (place / "SKILL.md").write_text(TEXT + "And goodbye.\n")
    assert "not asked yet greeting" in said(capsys, "list")[1]
    assert said(capsys, "forget", digest[:12]) == (0, "1 answer is forgotten\n")
    assert said(capsys, "accept", "greeting")[0] == 0
    assert said(capsys, "forget", "greeting")[0] == 0
    assert Agreed(home).kept() == ()
    assert said(capsys, "forget", "greeting")[0] == 2
    assert said(capsys, "accept", "nothing")[0] == 2


def test_all_of_a_project_are_agreed_to_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A headless machine needs one command; a name and --all together are a mistake of usage."""
    for name in ("greeting", "parting"):
        place = tmp_path / "project" / ".agents" / "skills" / name
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(TEXT.replace("greeting", name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    code, told = said(capsys, "accept", "--all")
    assert code == 0 and told.count("is agreed to, as it is now") == 2
    assert said(capsys, "list")[1].count("agreed ") == 2
    assert said(capsys, "accept")[0] == said(capsys, "accept", "greeting", "--all")[0] == 2


def test_a_yes_is_to_one_skill_and_a_name_forgets_all_that_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has read the second that a first one hides; what a skill said before is forgotten by its name."""
    project, home = tmp_path / "project", tmp_path / "home"
    first, second = (project / folder / "skills" / "greeting" for folder in (".artoo", ".claude"))
    for place, more in ((first, ""), (second, "And all that the person has.\n")):
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(TEXT + more)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(home))
    monkeypatch.chdir(project)
    _, told = said(capsys, "accept", "greeting")
    assert f"is agreed to, as it is now ({first})\nnot agreed to: the other one of that name ({second})\n" in told
    assert [folder for _, _, folder in Agreed(home).kept()] == [str(first)]
    shutil.rmtree(first)
    assert said(capsys, "list")[1].startswith("not asked yet greeting")
    assert said(capsys, "forget", "greeting") == (0, "1 answer is forgotten\n")
    assert Agreed(home).kept() == ()
    assert said(capsys, "accept", "greeting")[0] == 0
    monkeypatch.chdir(home)
    assert said(capsys, "forget", "greeting")[0] == 2  # that of another project


def test_a_skill_that_the_persons_own_hides_is_not_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No task would be offered it; a yes that nobody needs would count when the own one is gone."""
    home = tmp_path / "home"
    for folder in (home / "skills" / "greeting", tmp_path / "project" / ".artoo" / "skills" / "greeting"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(TEXT)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(home))
    monkeypatch.chdir(tmp_path / "project")
    code, told = said(capsys, "accept", "greeting")
    assert code == 2
    assert "your own skill 'greeting'" in told
    assert Agreed(home).kept() == ()


def test_a_fresh_home_is_made_and_what_cannot_be_kept_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first answer of all is kept; where the disk refuses it, nothing is claimed."""
    place = tmp_path / "project" / ".artoo" / "skills" / "greeting"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(TEXT)
    home = tmp_path / "fresh" / "home"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(home))
    monkeypatch.chdir(tmp_path / "project")
    assert said(capsys, "accept", "greeting")[0] == 0
    assert "agreed greeting" in said(capsys, "list")[1]
    (home / "skills-agreed.json").unlink()
    (home / "skills-agreed.json").mkdir()
    code, told = said(capsys, "accept", "greeting")
    assert code == 2
    assert "cannot be kept" in told
    assert "is agreed to" not in told
