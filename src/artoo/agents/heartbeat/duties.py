"""Run an agent's due duties in turns within one beat, and detect a throttled model (HTTP 429).

Code checks whether a duty is due.
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
    """The result of a duty: the number of items done, and of model calls.

    `bounded`: items whose number is limited elsewhere, so that they cannot cause a storm of wakes. `throttled`: why
    the model was unavailable (rate limit, no server); the heartbeat backs off. `trouble`: another error that an
    immediate retry would not fix; the heartbeat also backs off. `made`: paths whose changes took effect.
    """

    items: int = 0
    llm_calls: int = 0
    bounded: int = 0
    throttled: str | None = None
    trouble: str | None = None
    made: tuple[str, ...] = ()


class Duty(Protocol):
    """One kind of work: mail and tasks, the patrol, or the dream cycle."""

    @property
    def name(self) -> str:
        """Return the name of this duty, as the record of a pulse has it."""
        ...

    async def due(self) -> str | None:
        """Return a short description of the due work, or None. Uses only code, no model."""
        ...

    async def do(self) -> Done:
        """Do one piece of work. Raises ArtooError. It is cancelled when the heartbeat's grace period ends."""
        ...


@dataclass(slots=True)
class Labour:
    """The work done in a pulse. `throttled`, `trouble`: why to back off, because of the endpoint or of the agent
    itself.

    `ended` stays False if the work was interrupted.
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
        """Return whether this work counts against the limit on wakes. Work that another agent took first does
        not."""
        return self.items > self.bounded or bool(self.llm_calls and not self.items) or self.setback is not None

    @property
    def setback(self) -> str | None:
        """Return why no more work should be tried now. None if there is no reason."""
        return self.throttled or self.trouble

    def told(self) -> str:
        """Return the text for the record, such as `mail ×2, patrol ×1; backing off: 429 …`."""
        parts = [", ".join(f"{name} ×{count}" for name, count in self.turns.items()) or "nothing done"]
        if self.setback is not None:
            parts.append(f"backing off: {self.setback}")
        if not self.ended:
            parts.append("cut short")
        return "; ".join(parts)


async def labour(duties: Sequence[Duty], done: Labour, *, most: int, stop: Callable[[], bool]) -> None:
    """Run duties in turns, round after round, so that none is starved. `done` is updated after each turn."""
    # Rounds, because mail must not wait for a patrol that always has more items.
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
    """Return why the model cannot be used now, if the error means that. None for any other error.

    An agent's own exhausted budget does not count, because other agents can still use the endpoint.
    """
    if isinstance(error, ModelUnreachable):
        return _short(f"no model: {error}")
    if isinstance(error, ModelRefused) and error.status == TOO_MANY_REQUESTS:
        return _short(f"429: {error}")
    return None


def throttled_ending(result: FinalResult) -> str | None:
    """Return why the model cannot be used now, if the task's ending means that. None for any other ending."""
    if result.stopped_by is StoppedBy.NO_MODEL:
        return _short(f"no model: {result.summary}")
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WHY_LENGTH else f"{text[: _WHY_LENGTH - 1]}…"
