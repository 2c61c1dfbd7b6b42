"""The library without a configuration uses that of the home, as the command line does."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import Artoo, Config, RunOptions
from artoo.testing import ScriptedModel, with_body

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
SCRIPT = {
    "Plan": {"subtasks": [{"intent": "make it", "tool": "shell", "success_criteria": [ANSWERED]}]},
    "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "echo x | tee new.txt"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with settings that differ from the defaults; it stands in the process's environment."""
    home = tmp_path / "artoo"
    home.mkdir()
    (home / "config.yaml").write_text("apply: ask\nmemory:\n  enabled: false\n")
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("ARTOO_HOME", str(home))
    monkeypatch.setenv("ARTOO_WORKSPACE", str(tmp_path / "workspace"))
    return home


async def test_without_a_configuration_the_homes_holds(home: Path, tmp_path: Path) -> None:
    """`apply: ask` of the file lets nothing take effect unasked, and no memory is made where it is off."""
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(model=model) as artoo:
            result = await artoo.run("make it", options=RunOptions(project=tmp_path / "project"))
    assert result.changes.waits
    assert not (tmp_path / "project" / "new.txt").exists()
    assert not (home / "memory").exists()


async def test_the_variables_hold_over_the_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ARTOO_APPLY` says otherwise than the file, and is obeyed."""
    monkeypatch.setenv("ARTOO_APPLY", "new")
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(model=model) as artoo:
            result = await artoo.run("make it", options=RunOptions(project=tmp_path / "project"))
    assert result.changes.state == "applied"


async def test_a_configuration_that_is_given_is_taken_as_it_is(home: Path, tmp_path: Path) -> None:
    """The caller's own is not mixed with the home's."""
    config = Config(workspace=tmp_path / "workspace").at_home(home)
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(config, model=model) as artoo:
            result = await artoo.run("make it", options=RunOptions(project=tmp_path / "project"))
    assert result.changes.state == "applied"
