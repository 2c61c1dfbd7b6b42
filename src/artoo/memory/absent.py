"""No memory: what a task gets when the store is unusable or the operator turned memory off."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, KnownRequest, Megram, MemoryAction, Potentials
from artoo.contracts.tags import Pair
from artoo.ports.recall import KNOWN_REQUESTS


class NoMemory:
    """Implements both ports: recalls nothing, forgets everything, never fails. `reason` is for people."""

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
        """No advice."""
        return Calibration()

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """None."""
        return ()

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """None."""
        return ()

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """None."""
        return ()

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Nothing."""
        return ()

    def write(self, megram: Megram) -> None:
        """Lets it go."""

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Lets it go."""
        return ""

    async def flush(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to close."""


class UnusableMemory(NoMemory):
    """A store that could not be opened: lets writes go, and tells every reader why, so that the stream says it."""

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Raises MemoryStoreError."""
        raise MemoryStoreError(self.reason)
