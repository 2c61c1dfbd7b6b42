"""`artoo task review`: what a submission would change is laid out as at any task's end, and applied as a whole."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cli_terminal import terminal

from artoo import Artoo, Config
from artoo.agents.folders import create_agent
from artoo.cli.main import main
from artoo.contracts.agents import OPERATOR, SubmittedWork, TrustLevel
from artoo.runtime.options import RunOptions
from artoo.runtime.team.attempt import begin, hand_in
from artoo.runtime.team.office import open_office
from artoo.testing import Asked, ScriptedModel
from artoo.testing.replies import Scripted

ASK = "[a]pply all, [c]hoose, [k]eep for later, [d]iscard, [s]how again: "


def silent(asked: Asked) -> Scripted:
    """Nothing is asked here."""
    raise AssertionError(asked.contract)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a project that holds one file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("mine\n")
    return tmp_path.resolve()


async def submit(place: Path) -> str:
    """A task whose submission edits that file and waits for the operator."""
    home, project = place / "home", place / "project"
    config = Config.model_validate({"workspace": place / "out", "memory": {"enabled": False}}).at_home(home)
    async with (
        open_office(config) as office,
        Artoo(config, model=ScriptedModel(silent), environ={}) as artoo,
    ):
        identity = create_agent(home, "ada", role="clerk", persona="exact")
        await office.registry.register("ada", OPERATOR, sha256=identity.sha256, trust=TrustLevel.PROBATION)
        task = await office.board.add("edit a.txt", OPERATOR, assignee="ada", project=str(project))
        claim = await office.board.work.take(task.id, "ada")
        places = RunOptions(project=project, workspace=config.workspace_path)
        attempt = await begin(artoo, office.submissions, task, places)
        await attempt.view.write(project / "a.txt", b"theirs\n")
        await attempt.trunk.close()
        work = SubmittedWork(
            board_task=task.id, submission=1, agent="ada", run="run", request=task.text, summary="edited"
        )
        await hand_in(attempt, office.submissions, work, office.clock.now().timestamp(), 30.0)
        await office.merges.submit(claim, "edited")
    return task.id


@pytest.mark.parametrize(
    ("keys", "said", "content", "state"),
    [
        ("a\r", "is completed", "theirs\n", "completed"),
        ("k\r", "nothing was changed", "mine\n", "review"),
        ("c\r1\ry\r", "approved as a whole", "mine\n", "review"),
    ],
)
def test_in_a_terminal(
    place: Path, capsys: pytest.CaptureFixture[str], keys: str, said: str, content: str, state: str
) -> None:
    """The operator sees the diff and says yes to all of it; anything else changes nothing."""
    task = asyncio.run(submit(place))
    with terminal("reviews", ["task", "review", task, "approve"], place / "home", columns=120) as screen:
        screen.wait_for(ASK)
        assert "edited  project/a.txt" in screen.shown.replace("~/", "") and "+theirs" in screen.shown
        for part in keys.removesuffix("\r").split("\r"):
            screen.send(f"{part}\r")
        screen.wait_for(said)
        assert screen.end() == (0 if state == "completed" else 1)
    assert (place / "project" / "a.txt").read_text() == content
    assert main(["task", "show", task, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == state


def test_without_a_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs consent is named, and the digest of what was shown is the consent; `undo` takes it back."""
    task = asyncio.run(submit(place))
    assert main(["task", "review", task, "approve"]) == 1
    assert "a.txt: what is there now is overwritten" in capsys.readouterr().err
    assert main(["task", "show", task]) == 0
    assert "+theirs" in capsys.readouterr().out
    assert main(["task", "show", task, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (change,) = shown["changes"]
    assert (change["change_class"], change["diff"]) == ("edit", ["@@ -1 +1 @@", "-mine", "+theirs"])
    assert main(["task", "review", task, "approve", "--digest", "another"]) == 1
    assert (place / "project" / "a.txt").read_text() == "mine\n"
    assert main(["task", "review", task, "approve", "--digest", shown["digest"]]) == 0
    assert (place / "project" / "a.txt").read_text() == "theirs\n"
    assert main(["undo", task]) == 0
    assert (place / "project" / "a.txt").read_text() == "mine\n"
