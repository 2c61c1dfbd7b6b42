"""The operator's answer to what the Dreamer proposed, in memory and in the T layer.

Apart from `thinking`, which every task reads: a task needs no memory for it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from artoo.ports.memory_books import MemoryBooks
from artoo.runtime.task.persona import accept_text


async def settle_proposal(books: MemoryBooks, home: Path, proposal_id: str, *, accept: bool) -> Path | None:
    """Records the answer; returns the file of a proposal that is accepted.

    Raises MemoryStoreError when it is unknown or answered already, and what `accept_text` raises.
    """
    # The text first: a proposal that is marked as accepted and stands nowhere would be lost.
    wanted = next((each for each in await books.open_proposals() if each.id == proposal_id), None)
    file = await asyncio.to_thread(accept_text, home, wanted) if accept and wanted is not None else None
    await books.answer_proposal(proposal_id, accept=accept)
    return file
