"""A world for each test; what the sandbox proved is proved once for all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scenario import World

from artoo.sandbox.backends.select import open_backend


@pytest.fixture(scope="session")
def proved_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("proved")
    asyncio.run(open_backend(home))
    return home


@pytest.fixture
def world(tmp_path: Path, proved_home: Path) -> World:
    places = World(tmp_path / "home", tmp_path / "project", tmp_path / "workspace")
    places.home.mkdir(mode=0o700)
    places.project.mkdir()
    proof = proved_home / "sandbox-backend.json"
    if proof.exists():
        text = proof.read_text().replace(str(proved_home), str(places.home))
        (places.home / proof.name).write_text(text)
    return places
