"""Define the duties of an agent: looked for in code, done in turns inside one pulse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from artoo.contracts.errors import ArtooError, ModelRefused, ModelUnreachable
from artoo.contracts.solution import FinalResult, StoppedBy

TOO_MANY_REQUESTS = 429
_WHY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a duty: how many things it did, at how many model calls.

    The number of `bounded` items is limited elsewhere already, so they make no storm of wakes.
    `throttled`: the model could not be had (rate limit, no server), and why: the heartbeat backs off.
    `trouble`: something else went wrong that trying again at once would not fix; it backs off as well.
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
        """Return the name for the record of a pulse."""
        ...

    async def due(self) -> str | None:
        """Return the work that is due, in a few words, or None. Code only: never asks a model."""
        ...

    async def do(self) -> Done:
        """Do one piece of work. Raises ArtooError; cancelled when the heartbeat's patience at a stop ends."""
        ...


@dataclass(slots=True)
class Labour:
    """The work so far. `throttled`, `trouble`: why to back off, the endpoint's reason or the agent's own.

    `ended` stays False when the work was cut short.
    """

    items: int = 0
    llm_calls: int = 0
    bounded: int = 0
    throttled: str | None = None
    trouble: str | None = None
    ended: bool = False
    turns: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, name: str, done: Done) -> None:
        """Count the result of one turn of a duty."""
        self.items += done.items
        self.llm_calls += done.llm_calls
        self.bounded += done.bounded
        self.turns[name] = self.turns.get(name, 0) + done.items
        self.throttled = done.throttled
        self.trouble = None if done.throttled is not None else done.trouble

    @property
    def counts_as_wake(self) -> bool:
        """Return whether such work can make a storm of wakes. Work that another agent took first cannot."""
        return self.items > self.bounded or bool(self.llm_calls and not self.items) or self.setback is not None

    @property
    def setback(self) -> str | None:
        """Return why nothing more should be tried now."""
        return self.throttled or self.trouble

    def told(self) -> str:
        """Return the text for the record: `mail ×2, patrol ×1; backing off: 429 …`."""
        parts = [", ".join(f"{name} ×{count}" for name, count in self.turns.items()) or "nothing done"]
        if self.setback is not None:
            parts.append(f"backing off: {self.setback}")
        if not self.ended:
            parts.append("cut short")
        return "; ".join(parts)


async def labour(duties: Sequence[Duty], done: Labour, *, most: int, stop: Callable[[], bool]) -> None:
    """Give each duty a turn, round after round, so that none starves another. `done` grows as it goes."""
    # Rounds instead of one duty to its end: mail must not wait for a patrol that never runs dry.
    progress = True
    while progress:
        progress = False
        for duty in duties:
            if done.items >= most or done.setback is not None or stop():
                break
            progress = await _turn(duty, done) or progress
    done.ended = True


async def _turn(duty: Duty, done: Labour) -> bool:
    """Run one turn of a duty; True when it did something. Any error of artoo's own is a setback."""
    try:
        if await duty.due() is None:
            return False
        result = await duty.do()
    except ArtooError as error:
        result = Done(throttled=throttling(error), trouble=f"{duty.name} failed: {error}")
    done.add(duty.name, result)
    return result.items > 0


def throttling(error: Exception) -> str | None:
    """Return why a failure means that the model cannot be used now; None for any other failure.

    An agent's own budget is its own, and not the endpoint's.
    """
    if isinstance(error, ModelUnreachable):
        return _short(f"no model: {error}")
    if isinstance(error, ModelRefused) and error.status == TOO_MANY_REQUESTS:
        return _short(f"429: {error}")
    return None


def throttled_ending(result: FinalResult) -> str | None:
    """Return why a task's ending means that the model cannot be used now; None for any other ending."""
    if result.stopped_by is StoppedBy.NO_MODEL:
        return _short(f"no model: {result.summary}")
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WHY_LENGTH else f"{text[: _WHY_LENGTH - 1]}…"
