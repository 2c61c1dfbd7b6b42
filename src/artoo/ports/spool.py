"""A tap that loses nothing, as its consumer sees it (SPEC section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.envelope import Envelope


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages that could be kept neither in memory nor on disk, at their place among the others.

    `count` is exact. `by_task` says how many of each task were lost (pairs of task id and count); the
    tasks beyond the first thousand share the entry with an empty id.
    """

    count: int
    by_task: tuple[tuple[str, int], ...]
    reason: str


class Spool(Protocol):
    """Messages in the order in which they were published, for one consumer that may be slow."""

    @property
    def accepted(self) -> int:
        """Messages that were published so far, those in gaps included."""
        ...

    async def wait(self) -> None:
        """Returns when there is something to take. Raises StreamClosed when finished and empty."""
        ...

    def take(self, limit: int) -> list[Envelope | Gap]:
        """What is there, at most `limit` items; none when there is nothing."""
        ...

    async def receive_batch(self, limit: int = 512) -> list[Envelope | Gap]:
        """At least one and at most `limit` items. Raises StreamClosed when finished and empty."""
        ...
