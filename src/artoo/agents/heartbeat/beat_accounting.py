"""Every beat of an agent is accounted for once: in the ledger, and from there on the stream."""

from __future__ import annotations

from typing import Literal, Protocol

from artoo.agents.heartbeat.beat_grid import Beat
from artoo.contracts.agents import AgentWoken, ClockJumped, PulseRecorded, Recorded
from artoo.ports.clock import Clock

UNFINISHED = "not finished"
"""`why` of a pulse whose work has begun: in the ledger while it lasts, or after the process died in it."""

Outcome = Literal["run", "idle", "skipped", "missed"]


class PulseLedger(Protocol):
    """Where beats are accounted for, durably. What is recorded or told also goes on the stream."""

    async def last(self, agent: str) -> Beat | None:
        """The last beat that is accounted for."""
        ...

    async def begin(self, beat: Beat, pulse: PulseRecorded) -> None:
        """Accounts for a beat whose work begins now; `record` ends it. Not for the stream yet."""
        ...

    async def record(self, beat: Beat, pulse: PulseRecorded, *, last: Beat | None = None) -> None:
        """Accounts for `pulse.count` beats, from `beat` to `last` (None: that one)."""
        ...

    async def cut_off(self, agent: str, why: str) -> int:
        """Ends the runs that a dead process left unfinished; how many."""
        ...

    async def tell(self, agent: str, record: Recorded) -> None:
        """For the stream alone."""
        ...


class Accounts:
    """One agent's records."""

    def __init__(self, agent: str, ledger: PulseLedger, clock: Clock) -> None:
        self.agent = agent
        self._ledger = ledger
        self._clock = clock

    async def resumed(self) -> Beat | None:
        """The last beat that is accounted for, after ending the runs that a dead process left."""
        await self._ledger.cut_off(self.agent, "cut short: the process ended")
        return await self._ledger.last(self.agent)

    async def begin(self, beat: Beat) -> None:
        """There is work: whatever happens now, this beat was a run."""
        await self._ledger.begin(beat, self._pulse(beat, "run", UNFINISHED, 1, 0))

    async def record(self, beat: Beat, outcome: Outcome, why: str = "", *, llm_calls: int = 0) -> None:
        """Accounts for one beat."""
        await self._ledger.record(beat, self._pulse(beat, outcome, why, 1, llm_calls))

    async def missed(self, first: Beat, last: Beat, why: str) -> None:
        """Accounts for the beats from `first` to `last`, which were not held."""
        count = last.number - first.number + 1
        await self._ledger.record(first, self._pulse(first, "missed", why, count, 0), last=last)

    async def woken(self, cause: str, outcome: Literal["run", "deferred"], why: str, llm_calls: int = 0) -> None:
        """What a wake came to."""
        record = AgentWoken(
            agent=self.agent,
            at=self._clock.now(),
            cause=cause,
            outcome=outcome,
            why=why,
            llm_calls=llm_calls,
        )
        await self._ledger.tell(self.agent, record)

    async def jumped(self, seconds: float, decision: str) -> None:
        """The wall clock moved, and what was decided about the beats."""
        at = self._clock.now()
        record = ClockJumped(agent=self.agent, seconds=round(seconds, 3), decision=decision, at=at)
        await self._ledger.tell(self.agent, record)

    def _pulse(self, beat: Beat, outcome: Outcome, why: str, count: int, llm_calls: int) -> PulseRecorded:
        return PulseRecorded(
            agent=self.agent,
            due_at=beat.due_at,
            at=self._clock.now(),
            outcome=outcome,
            why=why,
            count=count,
            llm_calls=llm_calls,
        )
