"""The engines of shared memory, for tests that hold for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.memory.service import SharedMemory
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.store.address import StoreAddress

ENGINES = ("sqlite", "postgres")


def opened_on(engine: str, request: pytest.FixtureRequest, place: Path, clock: Clock, ids: Ids) -> SharedMemory:
    """Open an empty store. `place`: its directory, or where the other engine keeps what cannot be written."""
    if engine == "sqlite":
        return SharedMemory.open(place, clock, ids)
    address = request.getfixturevalue("store")
    assert isinstance(address, StoreAddress)
    return SharedMemory.shared(address, place, clock, ids)
