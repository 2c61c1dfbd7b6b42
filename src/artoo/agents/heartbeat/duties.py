"""What an agent has to do, as its heartbeat sees it: looked for in code, done by whoever knows how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.errors import ModelRefused, ModelUnreachable
from artoo.contracts.solution import FinalResult, StoppedBy

TOO_MANY_REQUESTS = 429
_WHY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Done:
    """What a duty did: how many things, at how many model calls.

    `bounded` of the items are such that somebody bounds their number already: a storm of wakes is not of them.
    `throttled`: the model could not be had (rate limit, no server), and why: the heartbeat backs off.
    `trouble`: something else went wrong that trying again at once would not mend; it backs off as well.
    `made`: paths that took effect on disk.
    """

    items: int = 0
    llm_calls: int = 0
    bounded: int = 0
    throttled: str | None = None
    trouble: str | None = None
    made: tuple[str, ...] = ()


class Duty(Protocol):
    """One kind of work: mail and tasks, the patrol, the dream cycle."""

    @property
    def name(self) -> str:
        """For the record of a pulse."""
        ...

    async def due(self) -> str | None:
        """What there is to do now, in a few words, or None. Code only: never asks a model."""
        ...

    async def do(self) -> Done:
        """Does one thing. Raises ArtooError; cancelled when the heartbeat's patience at a stop ends."""
        ...


def throttling(error: Exception) -> str | None:
    """Why a failure means that the model cannot be had now; None for any other failure.

    An agent's own budget is its own, and not the endpoint's.
    """
    if isinstance(error, ModelUnreachable):
        return _short(f"no model: {error}")
    if isinstance(error, ModelRefused) and error.status == TOO_MANY_REQUESTS:
        return _short(f"429: {error}")
    return None


def throttled_ending(result: FinalResult) -> str | None:
    """Why a task's ending means that the model cannot be had now; None for any other ending."""
    if result.stopped_by is StoppedBy.NO_MODEL:
        return _short(f"no model: {result.summary}")
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WHY_LENGTH else f"{text[: _WHY_LENGTH - 1]}…"
