"""What is discarded after its task has ended was no success: memory is told before the next task asks it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

from artoo.contracts.memory import MegramState
from artoo.memory.commands import opposing
from artoo.memory.store import MemoryStore
from artoo.workspace.settlement.history import settled_records

MOST_TASKS = 20
"""Discarded tasks that are looked at, the newest: each costs one question to memory."""
_GOOD = frozenset({MegramState.ACCEPT, MegramState.SUCCESS})


async def unlearn_discarded(store: MemoryStore, home: Path, now: datetime) -> None:
    """Oppose what tasks taught as a success whose changes were discarded since. Raises MemoryStoreError.

    It is idempotent: the id of an opposing entry follows from the entry that it opposes.
    """
    try:
        records = await asyncio.to_thread(settled_records, home)
    except OSError:
        return
    discarded = list(dict.fromkeys(one.task_id for one in records if one.what == "discarded"))
    good = [
        each
        for task_id in discarded[-MOST_TASKS:]
        for each in await store.taught_by(task_id)
        if each.sigma > 0 and each.state in _GOOD
    ]
    for each in good:
        store.write(opposing(each, "its changes were discarded", f"{each.id[:62]}-d", now))
    if good:
        await store.flush()
