"""The interface of a lossless tap of the stream, with gaps, and the definition of a lull.

Reference: SPEC section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from artoo.contracts.envelope import Envelope


@dataclass(frozen=True, slots=True)
class Gap:
    """A mark in the place of messages that were lost because neither memory nor disk had room for them.

    `count` is exact. `by_task` has pairs of a task id and the number of lost messages of this task. If more than a
    thousand tasks lost messages, the others share the entry with an empty id."""

    count: int
    by_task: tuple[tuple[str, int], ...]
    reason: str


class Lull(NamedTuple):
    """The definition of the end of a burst of messages: at least `first` seconds have passed since the first
    message, and no message has come for `quiet` seconds.

    The burst is also over after `longest` seconds, or when `enough` messages have come."""

    first: float
    quiet: float
    longest: float
    enough: int


class Spool(Protocol):
    """A queue of all messages in the order of publication, for one consumer that may be slow."""

    @property
    def accepted(self) -> int:
        """Count the messages that were published so far, including lost ones."""
        ...

    async def wait(self, lull: Lull | None = None) -> None:
        """Wait until there is a message to take. With `lull`, wait until the burst is over as well.

        Raises StreamClosed if the spool is finished and empty. A burst costs the publisher one timer."""
        ...

    def hurry(self) -> None:
        """End a wait for the end of a burst that is going on."""
        ...

    def take(self, limit: int) -> list[Envelope | Gap]:
        """Take the items that are present now, at most `limit` of them."""
        ...
