"""Open memory for one command or page, query advice about a pair, and answer proposals."""

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
    """Open the memory database that belongs to the configuration `config`, without changing the database.

    Raises MemoryStoreError if it cannot be used, and ConfigurationError if the database driver is not installed.
    """
    # The database engine is imported only if it is used.
    from artoo.memory.opening import open_books

    books = await open_books(config.memory_place)
    try:
        yield books
    finally:
        await books.close()


@dataclass(frozen=True, slots=True)
class Advice:
    """The present advice of memory about a (space, entity) pair. It consists of the potentials of the pair and its
    ten newest rules, newest first."""

    potentials: Potentials
    rules: tuple[SOPRecord, ...]


async def advice_about(config: Config, pair: Pair) -> Advice:
    """Return the present advice of memory about a pair, by the interface that the seed document defines.

    Raises MemoryStoreError.
    """
    # Looking up a rule counts as using it, so the time until it expires starts again. The database engine is
    # imported only if it is used. The database engine is imported only where it is used.
    from artoo.memory.opening import open_store

    memory = await open_store(config.memory_place, config.memory_spool, SystemClock(), UuidIds())
    try:
        return Advice(await memory.query_mk(*pair), await memory.query_c(*pair))
    finally:
        await memory.close()


async def settle_proposal(books: Books, home: Path, proposal_id: str, *, accept: bool) -> Path | None:
    """Record the user's answer to a proposal. Return the file with the text of an accepted proposal. Return None if
    the proposal was rejected.

    Raises MemoryStoreError if there is no such proposal or it was answered already. Also raises the errors of
    `accept_text`.
    """
    # The text is written first. In the other order, a crash could lose the text of a proposal that is already
    # marked as accepted.
    wanted = next((each for each in await books.open_proposals() if each.id == proposal_id), None)
    file = await asyncio.to_thread(accept_text, home, wanted) if accept and wanted is not None else None
    await books.answer_proposal(proposal_id, accept=accept)
    return file
