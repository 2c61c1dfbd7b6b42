"""The interface to read memory (potentials, rules, known requests), for planner, solver and people.

Reference: SPEC section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from artoo.contracts.memory import Calibration, KnownRequest, Megram, Potentials
from artoo.contracts.tags import Pair

# Maximum number of earlier requests with which a new request is compared. This takes up to ten milliseconds.
KNOWN_REQUESTS = 200


class Recall(Protocol):
    """The read side of memory. Every method raises MemoryStoreError if the store cannot be used. The task then
    continues without memory."""

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Return the present potentials of many tag pairs in the given order, all read from one snapshot."""
        ...

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        """Return the newest requests with a known kind, newest first. They are followed by the kinds of which
        memory has only the label; for these, the words of the label are the text."""
        ...

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """Return advice for planning a request of `kind`. It comes from the macro pair of the kind and from
        `pairs`, which are the offered tools and the pairs that a draft of the plan names.

        There are at most 10 pieces of advice, and they need no call of a model."""
        ...

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        """Return the pairs with the advice `exploit` that worked for tasks of the same kind, strongest first."""
        ...

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        """Return the wide pairs (`tool:<identity>` / `env:local`) of all tool identities that are in memory."""
        ...

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Return the megrams that a task stored, oldest first. At most 1,000 are returned."""
        ...
