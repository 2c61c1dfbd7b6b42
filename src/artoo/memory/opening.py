"""Opening memory for a task that must not depend on it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.absent import NoMemory, UnusableMemory
from artoo.memory.service import SharedMemory
from artoo.memory.store import MemoryStore
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

_log = logging.getLogger(__name__)


async def open_memory(directory: Path, clock: Clock, ids: Ids) -> MemoryStore | NoMemory:
    """The store in `directory`, or a warning and one that tells its readers why it is unusable (`reason`)."""
    try:
        return await asyncio.to_thread(SharedMemory.open, directory, clock, ids)
    except MemoryStoreError as error:
        _log.warning("going on without memory: %s", error)
        return UnusableMemory(str(error))
