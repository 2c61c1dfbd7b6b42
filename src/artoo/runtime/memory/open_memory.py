"""Memory's books, opened for one command or one page."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from artoo.runtime.config.model import Config

if TYPE_CHECKING:
    from artoo.ports.memory_books import MemoryBooks


@asynccontextmanager
async def opened_books(config: Config) -> AsyncGenerator[MemoryBooks]:
    """The books of the store that `config` names, as it is.

    Raises MemoryStoreError when it is unusable, ConfigurationError when the driver of a database is not there.
    """
    from artoo.memory.opening import open_books  # an engine only where the books are looked at

    books = await open_books(config.memory_place)
    try:
        yield books
    finally:
        await books.close()
