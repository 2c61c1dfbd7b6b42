"""A workspace that another version of artoo left: it is named, never applied, and one command discards it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
TASK = "01a2016b-4d3c-7f00-8000-0123456789ab"


@pytest.fixture
def view(project: Path) -> Path:
    """What a version with another format left of a task."""
    place = project.parent / ".artoo" / "workspaces" / TASK
    place.mkdir(parents=True)
    (place / "workspace.json").write_text('{"format": 0}')
    return place


def test_status_names_it_and_says_what_to_type(view: Path, artoo: Run) -> None:
    """Also for programs: its only command is to discard it."""
    said = artoo("status")
    assert said.returncode == 0, said.stderr
    assert "made by another version of artoo, and can only be discarded" in said.stdout
    [waiting] = json.loads(artoo("status", "--json").stdout)["changes_waiting"]
    assert waiting["commands"] == {"discard": f"artoo discard {TASK}"}


def test_it_is_neither_shown_nor_applied_and_can_be_discarded(view: Path, artoo: Run) -> None:
    """The last line of the error is the command that discards it, by the beginning of its id too."""
    for command in ("diff", "apply"):
        refused = artoo(command, TASK)
        assert refused.returncode != 0
        assert refused.stderr.splitlines()[-1] == f"artoo discard {TASK}"
        assert view.exists()
    assert artoo("discard", TASK[:8], "--yes").returncode == 0
    assert not view.exists()
    assert json.loads(artoo("status", "--json").stdout)["changes_waiting"] == []
