"""Stand for memory when the store is unusable or the operator turned memory off."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, KnownRequest, Megram, MemoryAction, Potentials
from artoo.contracts.tags import Pair
from artoo.ports.recall import KNOWN_REQUESTS


class NoMemory:
    """A memory that recalls nothing and never fails; it implements both ports. `reason` is for people."""

    def __init__(self, reason: str = "memory is off") -> None:
        self.reason = reason

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Ignore, for each."""
        ignore = MemoryAction.IGNORE
        return tuple(
            Potentials(space=each.space, entity=each.entity, attention=0.0, decision=0.0, action=ignore)
            for each in pairs
        )

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Return no advice."""
        return Calibration()

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Return no alternatives."""
        return ()

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Return no requests."""
        return ()

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Return no pairs."""
        return ()

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Return nothing."""
        return ()

    def write(self, megram: Megram) -> None:
        """Discard it."""

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Discard it."""
        return ""

    async def flush(self) -> None:
        """Return at once, because nothing is pending."""

    async def close(self) -> None:
        """Return at once, because nothing is open."""


class UnusableMemory(NoMemory):
    """A store that could not be opened: lets writes go, and tells every reader why, so that the stream says it."""

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Raise MemoryStoreError."""
        raise MemoryStoreError(self.reason)
