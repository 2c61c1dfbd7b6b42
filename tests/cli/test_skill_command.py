"""`artoo skill`: the skills of this project, and the answers about them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.cli.main import main
from artoo.runtime.app.skill_selection import Agreed

TEXT = "---\nname: greeting\ndescription: Say hello as we do here.\n---\nSay hello.\n"

Skill = Callable[..., tuple[int, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that does not exist yet; this process is in a project."""
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


@pytest.fixture
def skill(home: Path, capsys: pytest.CaptureFixture[str]) -> Skill:
    """`skill("list")`: the exit code and the output."""

    def call(*words: str) -> tuple[int, str]:
        code = main(["skill", *words])
        out = capsys.readouterr()
        return code, out.out + out.err

    return call


def write(folder: Path, text: str = TEXT) -> Path:
    """Make a skill in this folder of the project or the home."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def test_a_skill_is_accepted_exactly_as_it_is_and_answers_are_removed(home: Path, skill: Skill) -> None:
    """A changed skill is asked about again; an answer is removed by name and by digest."""
    place = write(Path(".artoo/skills/greeting"))
    assert "not asked yet greeting" in skill("list")[1]
    assert skill("accept", "greeting")[0] == 0
    assert "accepted greeting" in skill("list")[1]
    digest, yes, _ = Agreed(home).kept()[0]
    assert yes and digest[:12] in skill("list", "--all")[1]
    write(place, TEXT + "And goodbye.\n")
    assert "not asked yet greeting" in skill("list")[1]
    assert skill("forget", digest[:12]) == (0, "1 answer removed\n")
    assert skill("accept", "greeting")[0] == skill("forget", "greeting")[0] == 0
    assert Agreed(home).kept() == ()
    assert skill("forget", "greeting")[0] == skill("accept", "nothing")[0] == 2


def test_all_skills_of_a_project_are_accepted_at_once(skill: Skill) -> None:
    """A headless machine needs one command; a name and --all together are a mistake of usage."""
    for name in ("greeting", "parting"):
        write(Path(".agents/skills") / name, TEXT.replace("greeting", name))
    code, told = skill("accept", "--all")
    assert code == 0 and told.count("is accepted, as it is now") == 2
    assert skill("list")[1].count("accepted ") == 2
    assert skill("accept")[0] == skill("accept", "greeting", "--all")[0] == 2


def test_only_the_skill_that_tasks_get_is_accepted(
    home: Path, skill: Skill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second skill of the same name stays as it is; all answers of a name are removed, in this project only."""
    first, _ = (
        write(Path.cwd() / ".artoo/skills/greeting"),
        write(Path(".claude/skills/greeting"), TEXT + "More.\n"),
    )
    assert f"greeting is accepted, as it is now ({first})\n" in skill("accept", "greeting")[1]
    assert [folder for _, _, folder in Agreed(home).kept()] == [str(first)]
    shutil.rmtree(first)
    assert skill("list")[1].startswith("not asked yet greeting")
    assert skill("forget", "greeting") == (0, "1 answer removed\n")
    assert skill("accept", "greeting")[0] == 0
    monkeypatch.chdir(home)
    assert skill("forget", "greeting")[0] == 2


def test_a_skill_that_the_users_own_hides_is_not_accepted(home: Path, skill: Skill) -> None:
    """An unnecessary approval would count when the user's own skill is gone."""
    write(home / "skills/greeting")
    write(Path(".artoo/skills/greeting"))
    assert skill("accept", "greeting")[0] == 2 and Agreed(home).kept() == ()


def test_an_answer_that_cannot_be_stored_is_an_error(home: Path, skill: Skill) -> None:
    """Where the disk refuses the answer, nothing is claimed."""
    write(Path(".artoo/skills/greeting"))
    (home / "skills-agreed.json").mkdir(parents=True)
    code, told = skill("accept", "greeting")
    assert code == 2 and "cannot be stored" in told and "is accepted" not in told
