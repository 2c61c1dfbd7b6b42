"""The interface to read memory (potentials, rules, known requests), for planner, solver and people.

Reference: SPEC section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from artoo.contracts.memory import Calibration, KnownRequest, Megram, Potentials
from artoo.contracts.tags import Pair

# Earlier requests with which a new request is compared. This takes up to ten milliseconds.
KNOWN_REQUESTS = 200


class Recall(Protocol):
    """The read side of memory. Every method raises MemoryStoreError if the store is unusable; the task then
    continues without memory."""

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Return the live potentials of many pairs in one snapshot, in the given order."""
        ...

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Return the newest requests with a known kind, newest first. After them come the kinds of which memory
        has only the label, with the words of the label as text."""
        ...

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Return the advice for planning a request of `kind`, from its macro pair and `pairs` (offered tools,
        pairs that a draft names).

        The advice has at most 10 entries and needs no LLM call."""
        ...

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Return the Exploit pairs that worked for tasks of the same kind, strongest first."""
        ...

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Return the wide pairs (`tool:<identity>` / `env:local`) of all identities that are in memory."""
        ...

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Return the megrams that a task stored, oldest first, at most 1,000."""
        ...
