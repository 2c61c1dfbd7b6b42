"""A home of one's own for every test of the command line, and no model settings from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`ARTOO_HOME` in a temporary directory."""
    for name in list(os.environ):
        if name.startswith(("ARTOO_", "BRAIN_", "TOOL_", "OPENAI_")) or name == "NO_COLOR":
            monkeypatch.delenv(name)
    directory = tmp_path / "home"
    monkeypatch.setenv("ARTOO_HOME", str(directory))
    return directory
