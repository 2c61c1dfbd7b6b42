"""Memory's database, opened for one command or one page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.tags import Pair
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.config.model import Config
from artoo.runtime.task.persona import accept_text

if TYPE_CHECKING:
    from artoo.contracts.memory import Potentials, SOPRecord
    from artoo.memory.books import Books


@asynccontextmanager
async def opened_books(config: Config) -> AsyncGenerator[Books]:
    """Open the memory database of the store that `config` names, as it is.

    Raises MemoryStoreError when it is unusable, ConfigurationError when the driver of a database is not there.
    """
    # A database engine is loaded only where it is read.
    from artoo.memory.opening import open_books

    books = await open_books(config.memory_place)
    try:
        yield books
    finally:
        await books.close()


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice of memory about a pair now: its potentials, and its ten newest rules, newest first."""

    potentials: Potentials
    rules: tuple[SOPRecord, ...]


async def advice_about(config: Config, pair: Pair) -> Advice:
    """Return what the seed's own interface says of a pair.

    Raises MemoryStoreError.
    """
    # A rule that is looked up counts as used: its clock restarts.
    # A database engine is loaded only where something is recalled.
    from artoo.memory.opening import open_store

    memory = await open_store(config.memory_place, config.memory_spool, SystemClock(), UuidIds())
    try:
        return Advice(await memory.query_mk(*pair), await memory.query_c(*pair))
    finally:
        await memory.close()


async def settle_proposal(books: Books, home: Path, proposal_id: str, *, accept: bool) -> Path | None:
    """Record the answer; returns the file of a proposal that is accepted.

    Raises MemoryStoreError when it is unknown or answered already, and what `accept_text` raises.
    """
    # The text first: a proposal that is marked as accepted and stands nowhere would be lost.
    wanted = next((each for each in await books.open_proposals() if each.id == proposal_id), None)
    file = await asyncio.to_thread(accept_text, home, wanted) if accept and wanted is not None else None
    await books.answer_proposal(proposal_id, accept=accept)
    return file
