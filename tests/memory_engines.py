"""The engines of shared memory, for tests that hold for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.memory.postgres.service import PostgresMemory
from artoo.memory.service import SharedMemory
from artoo.memory.store import MemoryStore
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.store.address import StoreAddress

ENGINES = ("lmdb", "postgres")
SMALL_MAP = 1 << 18
"""So small that it has to grow."""


def opened_on(engine: str, request: pytest.FixtureRequest, place: Path, clock: Clock, ids: Ids) -> MemoryStore:
    """An empty store. `place`: its directory, or where the other engine keeps what cannot be written."""
    if engine == "lmdb":
        return SharedMemory.open(place, clock, ids, map_bytes=SMALL_MAP)
    address = request.getfixturevalue("store")
    assert isinstance(address, StoreAddress)
    return PostgresMemory(address, place, clock, ids)
