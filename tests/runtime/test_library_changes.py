"""The library's side of settling: a whole task with a scripted model, and what a caller can do with its changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import Artoo, Changes, Config, ConfigurationError, ConfirmationRequest, RunOptions, SandboxError
from artoo.contracts.settling import ChangeClass
from artoo.ports.confirm import Confirm, Said
from artoo.testing import ScriptedModel, with_body
from artoo.testing.script import Entry

CHANGE = "sed -i s/old/new/ a.txt; rm gone.txt; echo made > made.txt"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two files in a home of its own."""
    place = tmp_path / "home" / "project"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("old\n")
    (place / "gone.txt").write_text("here\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return place


def opened(project: Path, model: ScriptedModel, confirm: Confirm | None = None) -> Artoo:
    config = Config(workspace=project.parent / "workspace").at_home(project.parent / ".artoo")
    return Artoo(config, environ={}, model=model, confirm=confirm)


def script(change: str = CHANGE) -> dict[str, Entry]:
    made = {"check": "file_exists", "path": "made.txt"}
    criteria = [{"text": "made.txt exists", "mode": "verifiable", "check": made}]
    return {
        "Plan": {"subtasks": [{"intent": "tidy up", "tool": "shell", "success_criteria": criteria}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, change),
    }


def is_whole(project: Path) -> bool:
    return (project / "a.txt").read_text() == "old\n" and (project / "gone.txt").exists()


async def test_what_waits_is_looked_at_and_applied_in_parts(project: Path) -> None:
    """Without anybody to ask the result is pending; a path, then the rest, is applied through `result.changes`."""
    with ScriptedModel(script()) as model:
        async with opened(project, model) as artoo:
            result = await artoo.run("tidy up", options=RunOptions(project=project))
            assert isinstance(result.changes, Changes)
            assert result.changes.waits
            assert is_whole(project)
            review = await result.changes.diff()
            kinds = {one.path.rpartition("/")[2]: one.change_class for one in review.changes}
            assert kinds["gone.txt"] is ChangeClass.DELETION
            part = await result.changes.apply(project / "a.txt")
            assert (part.state, (project / "a.txt").read_text()) == ("partly", "new\n")
            assert (project / "gone.txt").exists()
            assert (await result.changes.apply()).state == "applied"
            assert not (project / "gone.txt").exists()
            with pytest.raises(ConfigurationError, match="nothing of a task"):
                await result.changes.discard()


@pytest.mark.parametrize("named", ["a.txt", "./a.txt", Path("a.txt"), "sub/../a.txt"])
async def test_a_relative_path_starts_in_the_tasks_project(project: Path, named: str | Path) -> None:
    """What the page of the library writes works, wherever the process stands."""
    with ScriptedModel(script()) as model:
        async with opened(project, model) as artoo:
            result = await artoo.run("tidy up", options=RunOptions(project=project))
            assert isinstance(result.changes, Changes)
            assert (await result.changes.apply(named)).state == "partly"
    assert ((project / "a.txt").read_text(), (project / "gone.txt").exists()) == ("new\n", True)


@pytest.mark.parametrize("named", ["", "/", "//", "a.txt/" + "../" * 40])
async def test_an_empty_path_chooses_nothing(project: Path, named: str) -> None:
    """A variable that was not set has not agreed to everything: it is refused, and every byte stays."""
    with ScriptedModel(script()) as model:
        async with opened(project, model) as artoo:
            result = await artoo.run("tidy up", options=RunOptions(project=project))
            assert isinstance(result.changes, Changes)
            for chosen in ((named,), (project / "a.txt", named)):
                with pytest.raises(SandboxError, match="is no path of what the task would change"):
                    await result.changes.apply(*chosen)
            with pytest.raises(SandboxError, match="no path is chosen"):
                await (await artoo.changes(result)).apply([])
            with pytest.raises(ConfigurationError, match="nothing of a task ''"):
                await artoo.changes("")
    assert is_whole(project)


@pytest.mark.parametrize(
    ("said", "state", "gone"),
    [
        (True, "applied", True),
        (False, "pending", False),
        (["/a.txt"], "partly", False),
        (["a.txt"], "partly", False),
        ([""], "pending", False),
        (["/"], "pending", False),
    ],
)
async def test_confirm_is_asked_once_about_the_whole(project: Path, said: Said, state: str, gone: bool) -> None:
    """A bool answers the review of the task, and so do paths of it."""
    asked: list[ConfirmationRequest] = []

    async def confirm(request: ConfirmationRequest) -> Said:
        asked.append(request)
        return [f"{project}/a.txt"] if said == ["/a.txt"] else said

    with ScriptedModel(script()) as model:
        async with opened(project, model, confirm) as artoo:
            result = await artoo.run("tidy up", options=RunOptions(project=project))
    assert [request.review is not None for request in asked] == [True]
    assert result.changes.state == state
    assert (project / "gone.txt").exists() is not gone
