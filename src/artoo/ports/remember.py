"""The interface to write memory, for solver, Dreamer, memory and runtime only.

Only the solver, the Dreamer, memory itself and the runtime may import this.
"""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.memory import Megram


class Remember(Protocol):
    """The write side of memory. Only `flush` and `close` wait for the disk."""

    def write(self, megram: Megram) -> None:
        """Queue a megram and return at once (within 20 µs). Never waits, never raises.

        If the queue is full, the megram is dropped and counted. A megram with a stored id is ignored."""
        ...

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Queue a megram of opposite σ against a stored one (a rule, or the lesson of a task), and return its id.

        Against a rule its weight is .9 (dissonance); against evidence it equals the initial weight of that
        evidence. An unknown id is counted as lost.
        """
        ...

    async def flush(self) -> None:
        """Wait until all earlier megrams are on disk. Raises MemoryStoreError if some were lost."""
        ...

    async def close(self) -> None:
        """Drain the queue and close the store. Idempotent."""
        ...
