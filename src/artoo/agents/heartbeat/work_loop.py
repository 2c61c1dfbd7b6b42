"""Work inside one pulse: duties take turns until none is due, the bound is reached, or one is set back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from artoo.agents.heartbeat.duties import Done, Duty, throttling
from artoo.contracts.errors import ArtooError


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


async def first_due(duties: Sequence[Duty]) -> str | None:
    """The name of the first duty that has something to do. Raises what the duties raise."""
    for duty in duties:
        if await duty.due() is not None:
            return duty.name
    return None


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
