"""A tap that loses nothing, as its consumer sees it (SPEC section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

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


class Lull(NamedTuple):
    """The end of a burst: `first` seconds after its first message nothing more comes for `quiet` seconds.

    It counts as over after `longest` seconds, or when `enough` messages are there.
    """

    first: float
    quiet: float
    longest: float
    enough: int


class Spool(Protocol):
    """Messages in the order in which they were published, for one consumer that may be slow."""

    @property
    def accepted(self) -> int:
        """Messages that were published so far, those in gaps included."""
        ...

    async def wait(self, lull: Lull | None = None) -> None:
        """Returns when there is something to take, with `lull` when the burst is over too.

        Raises StreamClosed when finished and empty. A burst costs who publishes one timer.
        """
        ...

    def hurry(self) -> None:
        """Ends a wait for the end of a burst."""
        ...

    def take(self, limit: int) -> list[Envelope | Gap]:
        """What is there, at most `limit` items; none when there is nothing."""
        ...

    async def receive_batch(self, limit: int = 512) -> list[Envelope | Gap]:
        """At least one and at most `limit` items. Raises StreamClosed when finished and empty."""
        ...
