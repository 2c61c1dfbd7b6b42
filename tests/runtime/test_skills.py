"""Skills in whole tasks: offered, chosen by a model, asked about once for each content, their files in reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import Artoo, Config, ConfirmationRequest, RunOptions
from artoo.contracts.execution import ToolCalled
from artoo.contracts.findings import NotAgreed
from artoo.contracts.solution import FinalResult
from artoo.ports.confirm import Confirm
from artoo.runtime.app.skill_selection import AGREED_FILE
from artoo.tasklog.reader import find_log
from artoo.testing import ScriptedModel, with_body
from artoo.testing.replies import Scripted
from artoo.testing.script import Entry
from artoo.words.result import result_words

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
READ = {"tool": "skill", "input": "greeting"}


def script(*steps: Scripted) -> dict[str, Entry]:
    plan = {"subtasks": [{"intent": "greet", "success_criteria": [ANSWERED]}]}
    return {"Plan": [plan], "ExecutorStep": list(steps)}


def final(command: str) -> Scripted:
    return with_body({"tool": "shell", "is_final": True}, command)


class Person:
    """Says the same to everything, and counts the questions."""

    def __init__(self, *, says: bool) -> None:
        self.says = says
        self.asked: list[ConfirmationRequest] = []

    async def __call__(self, request: ConfirmationRequest) -> bool:
        self.asked.append(request)
        return self.says


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "person" / "project"
    place.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return place


def skill(folder: Path, name: str = "greeting", says: str = "hello") -> Path:
    """A skill with a script that prints."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    text = (
        f"---\nname: {name}\ndescription: Say {name} as we do here.\n---\nRun greet.sh and report what it prints.\n"
    )
    (place / "SKILL.md").write_text(text)
    (place / "greet.sh").write_text(f"#!/bin/sh\necho {says}\n")
    (place / "greet.sh").chmod(0o755)
    return place


async def ran(
    project: Path, *steps: Scripted, confirm: Confirm | None = None, allow: tuple[str, ...] = ()
) -> tuple[FinalResult, list[ToolCalled], list[str]]:
    """The result, its calls, and the prompts."""
    config = Config(workspace=project.parent / "workspace").at_home(project.parent / ".artoo")
    with ScriptedModel(script(*steps)) as model:
        async with Artoo(config, environ={}, model=model, confirm=confirm) as artoo:
            result = await artoo.run("greet", options=RunOptions(project=project, allow=allow))
        systems = [request.system + request.user for request in model.player.requests]
    log = find_log(config.home, result.task_id).envelopes()
    return result, [one.payload for one in log if isinstance(one.payload, ToolCalled)], systems


async def test_a_persons_own_skill_is_read_and_its_script_runs_in_the_view(project: Path) -> None:
    """Offered to planner and executor without a question; the script lies where commands can read it."""
    skill(project.parent / ".artoo" / "skills")
    place = project.parent / ".local" / "share" / "artoo" / "skills"
    result, calls, systems = await ran(project, READ, final(f"sh {place}/greeting-*/greet.sh"))
    assert result.output.strip() == "hello"
    assert "Run greet.sh" in calls[0].call.output
    assert (
        str(place).replace(str(project.parent), "~") in calls[0].call.output or str(place) in calls[0].call.output
    )
    assert all("- greeting: Say greeting as we do here." in system for system in systems[:2])
    assert not result.facts or not any(isinstance(fact, NotAgreed) for fact in result.facts)


@pytest.mark.parametrize("folder", [".artoo/skills", ".agents/skills", ".claude/skills"])
async def test_a_projects_skill_is_asked_about_once(project: Path, folder: str) -> None:
    """A yes holds for exactly this content, in later tasks too; a changed byte is asked about again."""
    place = skill(project / folder)
    person = Person(says=True)
    result, calls, systems = await ran(project, READ, final(f"sh {folder}/greeting/greet.sh"), confirm=person)
    assert result.output.strip() == "hello"
    assert "not by the person who asks" in calls[0].call.output
    assert "greeting (this project's)" in systems[0]
    [question] = person.asked
    assert "greeting" in question.title and "Say greeting" in question.details[0]
    await ran(project, READ, final("echo x"), confirm=person)
    assert len(person.asked) == 1
    (place / "greet.sh").write_text("#!/bin/sh\necho other\n")
    await ran(project, READ, final("echo x"), confirm=person)
    assert len(person.asked) == 2


async def test_a_no_holds_and_is_told(project: Path) -> None:
    """Refused by the person: not offered, told with the result, and not asked again."""
    skill(project / ".claude" / "skills")
    person = Person(says=False)
    result, _, systems = await ran(project, final("echo x"), confirm=person)
    assert NotAgreed(what=("skill .claude/skills/greeting",)) in result.facts
    assert all("- greeting" not in system and "- skill" not in system for system in systems)
    await ran(project, final("echo x"), confirm=person)
    assert len(person.asked) == 1


async def test_where_nobody_can_be_asked_it_is_not_offered(project: Path) -> None:
    """Told with the result, and nothing is kept: whoever can be asked next is asked."""
    skill(project / ".agents" / "skills")
    result, _, systems = await ran(project, final("echo x"))
    assert any(isinstance(fact, NotAgreed) for fact in result.facts)
    assert all("- greeting" not in system and "- skill" not in system for system in systems)
    assert not (project.parent / ".artoo" / AGREED_FILE).exists()
    person = Person(says=True)
    await ran(project, READ, final("echo x"), confirm=person)
    assert len(person.asked) == 1


async def test_an_allow_line_offers_it_for_one_run(project: Path) -> None:
    """Where nobody can be asked a standing permission answers, and nothing is kept of it."""
    skill(project / ".agents" / "skills")
    result, _, systems = await ran(project, final("echo x"), allow=("skill .agents/skills/*",))
    assert not any(isinstance(fact, NotAgreed) for fact in result.facts)
    assert any("- greeting" in system for system in systems)
    result, _, _ = await ran(project, final("echo x"))
    (fact,) = (fact for fact in result.facts if isinstance(fact, NotAgreed))
    told = result_words("en").fact(fact)
    assert "artoo skill accept --all" in told and '--allow "skill .agents/skills/greeting"' in told


async def test_a_projects_skill_never_stands_in_for_the_persons_own(project: Path) -> None:
    """Of one name the person's own counts, and nobody is asked about the other."""
    skill(project.parent / ".artoo" / "skills", says="mine")
    skill(project / ".artoo" / "skills", says="theirs")
    person = Person(says=True)
    _, calls, _ = await ran(project, READ, final("echo x"), confirm=person)
    assert "by the authors" not in calls[0].call.output
    assert person.asked == []
