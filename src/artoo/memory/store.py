"""What the runtime holds of shared memory, whatever engine it is on."""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.memory import Potentials, SOPRecord
from artoo.memory.writer import WriterStatistics
from artoo.ports.dream import DreamStore
from artoo.ports.memory_books import MemoryBooks
from artoo.ports.recall import Recall
from artoo.ports.remember import Remember


class MemoryStore(Recall, Remember, Protocol):
    """Both sides for tasks, and what stands beside them. Implemented by `SharedMemory` and `PostgresMemory`."""

    @property
    def statistics(self) -> WriterStatistics:
        """What the writer has done so far."""
        ...

    @property
    def books(self) -> MemoryBooks:
        """What people may do with the store. Lives as long as the store: not to be closed."""
        ...

    def dreams(self) -> DreamStore:
        """The Dreamer's side."""
        ...

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """The C-level rules of a pair, newest first, at most 10. Restarts the clock of those returned."""
        ...

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """The live potentials of a pair over its M and K entries; zero and Ignore when it has none."""
        ...
