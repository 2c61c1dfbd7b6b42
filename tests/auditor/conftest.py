"""Healthy streams, recorded once from real tasks."""

from __future__ import annotations

import asyncio

import pytest
from tapes import SCRIPTS, Tape, record


@pytest.fixture(scope="session")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tape]:
    return {
        name: asyncio.run(record(tmp_path_factory.mktemp(name), request, script))
        for name, (request, script) in SCRIPTS.items()
    }
