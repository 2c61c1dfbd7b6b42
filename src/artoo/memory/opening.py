"""Open the memory store for tasks or commands, or fall back to no memory.

The engines are imported only if they are used.
"""

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
    """Open the store in the directory or database `place`. If this fails, log a warning and return a memory whose
    reads raise the error.

    `spool`: the directory for writes that cannot reach a database yet. A database that cannot be reached at this
    time is opened nevertheless. Reading from it raises an error.
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
    """Open a store for the operations that people make on it. Raises MemoryStoreError, ConfigurationError."""

    def opened() -> Books:
        from artoo.memory.books import Books
        from artoo.memory.engines import engine_at

        return Books(engine_at(place))

    return await asyncio.to_thread(opened)
