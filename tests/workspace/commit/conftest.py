"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_world import CommitWorld


@pytest.fixture
def world(tmp_path: Path) -> CommitWorld:
    """A world whose project is not made yet."""
    return CommitWorld(tmp_path.resolve())
