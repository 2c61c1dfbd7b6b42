"""Opening memory for a task that must not depend on it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.memory.absent import NoMemory, UnusableMemory
from artoo.memory.store import MemoryStore
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.ports.memory_books import MemoryBooks
from artoo.store.address import StoreAddress

_log = logging.getLogger(__name__)


async def open_memory(place: Path | StoreAddress, spool: Path, clock: Clock, ids: Ids) -> MemoryStore | NoMemory:
    """The store in the directory or database `place`, or a warning and one that tells its readers what is wrong.

    `spool`: where what cannot be written to a database is kept until it can be. A database that is away opens all
    the same, and says so when it is read.
    """
    try:
        return await open_store(place, spool, clock, ids)
    except (MemoryStoreError, ConfigurationError) as error:
        _log.warning("going on without memory: %s", error)
        return UnusableMemory(str(error))


async def open_store(place: Path | StoreAddress, spool: Path, clock: Clock, ids: Ids) -> MemoryStore:
    """The same. Raises MemoryStoreError, and ConfigurationError when the database's driver is not there."""
    # Each engine where it is used: neither LMDB nor the driver is needed by who has the other.
    if isinstance(place, StoreAddress):
        from artoo.store.connecting import check_installed

        check_installed()
        from artoo.memory.postgres.service import PostgresMemory

        return PostgresMemory(place, spool, clock, ids)
    from artoo.memory.service import SharedMemory

    return await asyncio.to_thread(SharedMemory.open, place, clock, ids)


async def open_books(place: Path | StoreAddress) -> MemoryBooks:
    """The books of a store, as it is. Raises MemoryStoreError, ConfigurationError."""
    if isinstance(place, StoreAddress):
        from artoo.store.connecting import check_installed

        check_installed()
        from artoo.memory.postgres.books import PostgresBooks
        from artoo.memory.postgres.database import Database

        return PostgresBooks(Database(place))
    from artoo.memory.books import EmbeddedBooks

    return await asyncio.to_thread(EmbeddedBooks.open, place)
