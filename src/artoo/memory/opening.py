"""Open memory: an engine only where it is used, and for a task that must not depend on it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.memory.absent import NoMemory
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.store.address import StoreAddress

if TYPE_CHECKING:
    from artoo.memory.books import Books
    from artoo.memory.service import SharedMemory

_log = logging.getLogger(__name__)


async def open_memory(place: Path | StoreAddress, spool: Path, clock: Clock, ids: Ids) -> SharedMemory | NoMemory:
    """Return the store in the directory or database `place`, or warn and return one that tells its readers what is
    wrong.

    `spool`: where what cannot be written to a database is kept until it can be. A database that is away opens all
    the same, and says so when it is read.
    """
    try:
        return await open_store(place, spool, clock, ids)
    except (MemoryStoreError, ConfigurationError) as error:
        _log.warning("going on without memory: %s", error)
        return NoMemory(str(error), unusable=True)


async def open_store(place: Path | StoreAddress, spool: Path, clock: Clock, ids: Ids) -> SharedMemory:
    """Open the store. Raises MemoryStoreError, and ConfigurationError when the database's driver is missing."""

    def opened() -> SharedMemory:
        from artoo.memory.service import SharedMemory

        if isinstance(place, StoreAddress):
            return SharedMemory.shared(place, spool, clock, ids)
        return SharedMemory.open(place, clock, ids)

    return await asyncio.to_thread(opened)


async def open_books(place: Path | StoreAddress) -> Books:
    """Return memory's records of a store, as it is. Raises MemoryStoreError, ConfigurationError."""

    def opened() -> Books:
        from artoo.memory.books import Books
        from artoo.memory.engines import engine_at

        return Books(engine_at(place))

    return await asyncio.to_thread(opened)
