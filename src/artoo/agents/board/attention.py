"""What an agent turns to next, as a pure function (SPEC section 11; seed 004, the attention controller).

    critical tasks ─ unread mail (critical, standard, background) ─ standard tasks ─ background tasks ─ idle

Within one level, first come first served. What has waited as long as the bound stands with the critical tasks, by
its arrival: from then on nothing that came later is chosen before it, so it waits no longer than what was there
before it takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from artoo.contracts.agents import Priority

BOUND_SECONDS = 3_600.0
"""How long the order of urgency holds; then the order of arrival does."""


Kind = Literal["task", "review", "mail"]
"""What can wait for an agent."""


class Level(IntEnum):
    """What comes first."""

    CRITICAL_TASK = 0
    CRITICAL_MAIL = 1
    STANDARD_MAIL = 2
    BACKGROUND_MAIL = 3
    STANDARD_TASK = 4
    BACKGROUND_TASK = 5


_MAIL = {
    Priority.CRITICAL: Level.CRITICAL_MAIL,
    Priority.STANDARD: Level.STANDARD_MAIL,
    Priority.BACKGROUND: Level.BACKGROUND_MAIL,
}
_TASK = {
    Priority.CRITICAL: Level.CRITICAL_TASK,
    Priority.STANDARD: Level.STANDARD_TASK,
    Priority.BACKGROUND: Level.BACKGROUND_TASK,
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits for an agent: a task to work on, a submission to review, a letter.

    `since_us`: when it began to wait (µs of a clock that never goes back); `number` settles ties, lower first.
    """

    kind: Kind
    id: str
    priority: Priority
    since_us: int
    number: int

    @property
    def level(self) -> Level:
        """Its level while it is young."""
        return (_MAIL if self.kind == "mail" else _TASK)[self.priority]


def level_at(item: Waiting, now_us: int, bound_us: int) -> Level:
    """Its level now: the first once it has waited `bound_us`."""
    return Level.CRITICAL_TASK if now_us - item.since_us >= bound_us else item.level


def choose(waiting: Iterable[Waiting], now_us: int, bound_us: int) -> Waiting | None:
    """What to turn to next; None: idle."""
    return min(
        waiting,
        key=lambda item: (level_at(item, now_us, bound_us), item.since_us, item.number),
        default=None,
    )
