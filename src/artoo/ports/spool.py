"""Define a lossless tap as its consumer sees it (SPEC section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from artoo.contracts.envelope import Envelope


@dataclass(frozen=True, slots=True)
class Gap:
    """A number of messages that could be kept neither in memory nor on disk, at their place among the others.

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
    """The messages in the order in which they were published, for one consumer that may be slow."""

    @property
    def accepted(self) -> int:
        """Count the messages that were published so far, messages in gaps included."""
        ...

    async def wait(self, lull: Lull | None = None) -> None:
        """Wait until there is a message to take; with `lull`, until the burst is over too.

        Raises StreamClosed when finished and empty. A burst costs the publisher one timer.
        """
        ...

    def hurry(self) -> None:
        """Stop a wait for the end of a burst."""
        ...

    def take(self, limit: int) -> list[Envelope | Gap]:
        """Take the present items, at most `limit`."""
        ...
