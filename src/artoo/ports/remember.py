"""Memory's write side. Only the solver, the Dreamer, memory itself and the runtime may import this."""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.memory import Megram


class Remember(Protocol):
    """Fire and forget: nothing here waits for the disk except `flush` and `close`."""

    def write(self, megram: Megram) -> None:
        """Queues a megram and returns at once (20 µs at most). Never waits, never raises.

        A full queue drops the megram and counts it; an id that is already stored is ignored.
        """
        ...

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Queues a megram of opposite σ against a stored one (a rule, or something a task has taught); its id.

        Against a rule it weighs .9 (dissonance); against evidence exactly as much as that was worth at its
        birth. An unknown id is counted as lost.
        """
        ...

    async def flush(self) -> None:
        """Returns when everything queued before is on disk. Raises MemoryStoreError when some of it was lost."""
        ...

    async def close(self) -> None:
        """Drains the queue and closes the store. Idempotent."""
        ...
