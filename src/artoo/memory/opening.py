"""Opening memory for a task that must not depend on it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.absent import NoMemory
from artoo.memory.service import SharedMemory
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

_log = logging.getLogger(__name__)


async def open_memory(directory: Path, clock: Clock, ids: Ids) -> SharedMemory | NoMemory:
    """The store in `directory`, or, when it is unusable, a warning and no memory (its `reason` says why)."""
    try:
        return await asyncio.to_thread(SharedMemory.open, directory, clock, ids)
    except MemoryStoreError as error:
        _log.warning("going on without memory: %s", error)
        return NoMemory(str(error))
