"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with nothing in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path.resolve()
