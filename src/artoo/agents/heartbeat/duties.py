"""What an agent has to do, as its heartbeat sees it: looked for in code, done in turns inside one pulse."""

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


@dataclass(slots=True)
class Labour:
    """What was done so far. `throttled`, `trouble`: why to back off, the endpoint's reason or the agent's own.

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
        """Counts what one turn of a duty did."""
        self.items += done.items
        self.llm_calls += done.llm_calls
        self.bounded += done.bounded
        self.turns[name] = self.turns.get(name, 0) + done.items
        self.throttled = done.throttled
        self.trouble = None if done.throttled is not None else done.trouble

    @property
    def counts_as_wake(self) -> bool:
        """Whether a storm could be made of such work. What another agent was faster at is none."""
        return self.items > self.bounded or bool(self.llm_calls and not self.items) or self.setback is not None

    @property
    def setback(self) -> str | None:
        """Why nothing more should be tried now."""
        return self.throttled or self.trouble

    def told(self) -> str:
        """For the record: `mail ×2, patrol ×1; backing off: 429 …`."""
        parts = [", ".join(f"{name} ×{count}" for name, count in self.turns.items()) or "nothing done"]
        if self.setback is not None:
            parts.append(f"backing off: {self.setback}")
        if not self.ended:
            parts.append("cut short")
        return "; ".join(parts)


async def labour(duties: Sequence[Duty], done: Labour, *, most: int, stop: Callable[[], bool]) -> None:
    """Gives each duty a turn, round after round, so that none starves another. `done` grows as it goes."""
    progress = True
    while progress:
        progress = False
        for duty in duties:
            if done.items >= most or done.setback is not None or stop():
                break
            progress = await _turn(duty, done) or progress
    done.ended = True


async def _turn(duty: Duty, done: Labour) -> bool:
    """True when the duty did something. An error of artoo's own is a setback, whatever it is."""
    try:
        if await duty.due() is None:
            return False
        result = await duty.do()
    except ArtooError as error:
        result = Done(throttled=throttling(error), trouble=f"{duty.name} failed: {error}")
    done.add(duty.name, result)
    return result.items > 0


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
