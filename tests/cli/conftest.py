"""A home of one's own for every test of the command line, and no model settings from outside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`ARTOO_HOME` in a temporary directory."""
    for name in list(os.environ):
        if name.startswith(("ARTOO_", "BRAIN_", "TOOL_", "OPENAI_")) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    directory = tmp_path / "home"
    monkeypatch.setenv("ARTOO_HOME", str(directory))
    return directory


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project in a home of its own, where this process stands."""
    place = tmp_path / "home" / "project"
    place.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place.parent))
    monkeypatch.setenv("ARTOO_HOME", str(place.parent / ".artoo"))
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def artoo(project: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `artoo …` in `project`, without a terminal, and in this process: Python need not start each time."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(arguments)
        said = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return run
