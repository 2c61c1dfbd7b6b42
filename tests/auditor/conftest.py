"""Healthy streams, recorded once from real tasks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
from tapes import Tape, recorded


@pytest.fixture(scope="session")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tape]:
    return recorded(tmp_path_factory)
