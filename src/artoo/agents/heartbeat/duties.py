"""Run an agent's due duties in turns within one beat, and detect a throttled model (HTTP 429).

Whether a duty is due is checked by code, without a model.
"""

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
    """The result of one turn of a duty, with the numbers of items done and of model calls.

    `bounded`: items whose number is limited elsewhere, so that they cannot cause too many wakes. `throttled`: the
    reason why the model was not available (a rate limit, or no server). The heartbeat then backs off. `trouble`:
    another error that an immediate retry would not fix. The heartbeat backs off too. `made`: the paths whose
    changes were applied.
    """

    items: int = 0
    llm_calls: int = 0
    bounded: int = 0
    throttled: str | None = None
    trouble: str | None = None
    made: tuple[str, ...] = ()


class Duty(Protocol):
    """One kind of work of an agent: mail and tasks, the patrol, or the dream cycle."""

    @property
    def name(self) -> str:
        """Return the name by which the record of a beat refers to this duty."""
        ...

    async def due(self) -> str | None:
        """Return a short description of the work that is due, or None if there is none. This asks no model."""
        ...

    async def do(self) -> Done:
        """Do one item of the work. Raises ArtooError. The call is cancelled when the grace period of the heartbeat
        ends."""
        ...


@dataclass(slots=True)
class Labour:
    """The work that was done in one beat. `throttled`, `trouble`: reasons to back off, because of the endpoint or
    because of the agent itself.

    `ended` is False if the work was interrupted.
    """

    items: int = 0
    llm_calls: int = 0
    bounded: int = 0
    throttled: str | None = None
    trouble: str | None = None
    ended: bool = False
    turns: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, name: str, done: Done) -> None:
        """Add the result of one turn of a duty."""
        self.items += done.items
        self.llm_calls += done.llm_calls
        self.bounded += done.bounded
        self.turns[name] = self.turns.get(name, 0) + done.items
        self.throttled = done.throttled
        self.trouble = None if done.throttled is not None else done.trouble

    @property
    def counts_as_wake(self) -> bool:
        """Return whether this work counts against the limit on wakes. Work that another agent took first does not
        count."""
        return self.items > self.bounded or bool(self.llm_calls and not self.items) or self.setback is not None

    @property
    def setback(self) -> str | None:
        """Return the reason why no more work should be tried now. Return None if there is no such reason."""
        return self.throttled or self.trouble

    def told(self) -> str:
        """Return a text for the record of the beat, such as `mail ×2, patrol ×1; backing off: 429 …`."""
        parts = [", ".join(f"{name} ×{count}" for name, count in self.turns.items()) or "nothing done"]
        if self.setback is not None:
            parts.append(f"backing off: {self.setback}")
        if not self.ended:
            parts.append("cut short")
        return "; ".join(parts)


async def labour(duties: Sequence[Duty], done: Labour, *, most: int, stop: Callable[[], bool]) -> None:
    """Run duties in turns, round after round, so that each gets its turn. `done` is updated after each turn."""
    # Each duty gets one turn in a round. Otherwise mail would have to wait for a patrol that always has more items.
    progress = True
    while progress:
        progress = False
        for duty in duties:
            if done.items >= most or done.setback is not None or stop():
                break
            progress = await _turn(duty, done) or progress
    done.ended = True


async def _turn(duty: Duty, done: Labour) -> bool:
    """Run one turn of a duty, and return whether it did any work. An ArtooError is recorded as a setback."""
    try:
        if await duty.due() is None:
            return False
        result = await duty.do()
    except ArtooError as error:
        result = Done(throttled=throttling(error), trouble=f"{duty.name} failed: {error}")
    done.add(duty.name, result)
    return result.items > 0


def throttling(error: Exception) -> str | None:
    """Return the reason why the model cannot be used now, if the error says so. Return None for any other error.

    If only the agent's own budget is used up, this does not count, because other agents can still use the endpoint.
    """
    if isinstance(error, ModelUnreachable):
        return _short(f"no model: {error}")
    if isinstance(error, ModelRefused) and error.status == TOO_MANY_REQUESTS:
        return _short(f"429: {error}")
    return None


def throttled_ending(result: FinalResult) -> str | None:
    """Return the reason why the model cannot be used now, if the ending of a task says so. Return None for any
    other ending."""
    if result.stopped_by is StoppedBy.NO_MODEL:
        return _short(f"no model: {result.summary}")
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WHY_LENGTH else f"{text[: _WHY_LENGTH - 1]}…"
