"""Define the write side of memory. Only the solver, the Dreamer, memory itself and the runtime may import this."""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.memory import Megram


class Remember(Protocol):
    """The write side of memory. Nothing but `flush` and `close` waits for the disk."""

    def write(self, megram: Megram) -> None:
        """Queue a megram and return at once (20 µs at most). Never waits, never raises.

        A full queue drops the megram and counts it; an id that is already stored is ignored.
        """
        ...

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Queue a megram of opposite σ against a stored one (a rule, or the lesson of a task), and return its id.

        Against a rule it weighs .9 (dissonance); against evidence exactly as much as that was worth at its
        birth. An unknown id is counted as lost.
        """
        ...

    async def flush(self) -> None:
        """Wait until all earlier megrams are on disk. Raises MemoryStoreError if some were lost."""
        ...

    async def close(self) -> None:
        """Drain the queue and close the store. Idempotent."""
        ...
