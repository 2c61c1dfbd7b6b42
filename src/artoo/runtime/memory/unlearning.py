"""Oppose lessons of tasks with changes that were discarded later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from artoo.contracts.memory import Megram, MegramState
from artoo.memory.commands import opposing
from artoo.memory.service import SharedMemory
from artoo.ports.remember import Remember
from artoo.workspace.settlement.history import settled_records

MOST_TASKS = 20
"""The maximum number of discarded tasks that are checked, because each needs one query to memory. The newest are
checked."""
_GOOD = frozenset({MegramState.ACCEPT, MegramState.SUCCESS})


async def unlearn_discarded(store: SharedMemory, home: Path, now: datetime) -> None:
    """Write entries that oppose the lessons of tasks whose changes were discarded. Raises MemoryStoreError."""
    # The call can be repeated, because the id of an opposing entry is derived from the entry that it opposes.
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


@dataclass(frozen=True, slots=True)
class WithoutSecrets:
    """Removes secrets from texts and tags before it passes them to `store`. Implements
    `ports.remember.Remember`."""

    store: Remember
    redacted: Callable[[str], str]

    def write(self, megram: Megram) -> None:
        clean = {name: self.redacted(getattr(megram, name)) for name in ("space", "entity", "content")}
        self.store.write(megram.model_copy(update=clean))

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        return self.store.record_negative_feedback(rule_id, self.redacted(content))

    async def flush(self) -> None:
        await self.store.flush()

    async def close(self) -> None:
        await self.store.close()
