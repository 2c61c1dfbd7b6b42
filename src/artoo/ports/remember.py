"""The interface to write memory, for solver, Dreamer, memory and runtime only.

Only the solver, the Dreamer, memory itself and the runtime may import this module.
"""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.memory import Megram


class Remember(Protocol):
    """The write side of memory. Only `flush` and `close` wait for the disk."""

    def write(self, megram: Megram) -> None:
        """Queue a megram and return at once (within 20 µs). This method never waits and never raises.

        If the queue is full, the megram is dropped and counted. A megram is ignored if its id is already stored."""
        ...

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """Queue a megram that counts against a stored one, and return its id. It has the opposite valence σ. The
        stored one is a rule, or the lesson of a task.

        Against a rule, the weight of the new megram is .9 (dissonance). Against evidence, its weight equals the
        initial weight of that evidence. If the id of the stored megram is unknown, the new megram is counted as
        lost.
        """
        ...

    async def flush(self) -> None:
        """Wait until all earlier megrams are on disk. Raises MemoryStoreError if some of them were lost."""
        ...

    async def close(self) -> None:
        """Write the queued megrams and close the store. A second call has no effect."""
        ...
