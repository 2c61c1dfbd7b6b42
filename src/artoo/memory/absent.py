"""The empty memory, which is used if the store is unusable or memory is off."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, KnownRequest, Megram, MemoryAction, Potentials
from artoo.contracts.tags import Pair
from artoo.ports.recall import KNOWN_REQUESTS


class NoMemory:
    """A memory that returns nothing and stores nothing. It implements both interfaces, for reading and for writing.
    `reason` is shown to people.

    `unusable`: true if a store could not be opened. Reading then raises an error with the reason, which is recorded
    on the stream.
    """

    def __init__(self, reason: str = "memory is off", *, unusable: bool = False) -> None:
        self.reason = reason
        self._unusable = unusable

    def _check(self) -> None:
        if self._unusable:
            raise MemoryStoreError(self.reason)

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Return the action Ignore for each pair."""
        self._check()
        ignore = MemoryAction.IGNORE
        return tuple(
            Potentials(space=each.space, entity=each.entity, attention=0.0, decision=0.0, action=ignore)
            for each in pairs
        )

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Return no advice."""
        self._check()
        return Calibration()

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Return no alternatives."""
        self._check()
        return ()

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Return no requests."""
        self._check()
        return ()

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Return no pairs."""
        self._check()
        return ()

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Return no megrams."""
        self._check()
        return ()

    def write(self, megram: Megram) -> None:
        """Discard the megram."""

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Discard the feedback."""
        return ""

    async def flush(self) -> None:
        """Return at once, because no write is pending."""

    async def close(self) -> None:
        """Return at once, because there is nothing to close."""
