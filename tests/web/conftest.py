"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two files in a home of its own."""
    place = tmp_path / "person" / "project"
    place.mkdir(parents=True)
    (place / "a.txt").write_text("old\n")
    (place / "gone.txt").write_text("here\n")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return place
