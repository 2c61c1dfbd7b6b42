"""The ledger of beats in the activity database: each beat is accounted for once, and told on the stream.

Beats are numbered, so that none is counted twice and none is left out, whatever the clock does. Idle beats in a
row, and beats that were skipped for one reason, share a row: an idle team's ledger does not grow.
"""

from __future__ import annotations

from typing import Literal

from artoo.agents.heartbeat.beats import Beat
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.agents import AgentWoken, ClockJumped, PulseRecorded, Recorded
from artoo.contracts.roles import Role

UNFINISHED = "not finished"
"""`why` of a pulse whose work has begun: in the ledger while it lasts, or after the process died in it."""
_CUT = "cut short: the process ended"

Outcome = Literal["run", "idle", "skipped", "missed"]

_LATEST = "SELECT * FROM pulses WHERE agent = ? ORDER BY number DESC LIMIT 1"


class Pulses:
    """The beats of all agents. Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def resumed(self, agent: str) -> Beat | None:
        """Return the last beat that is accounted for, after ending the runs that a dead process left."""

        def work(writing: Writing) -> Beat | None:
            rows = writing.all(
                "SELECT * FROM pulses WHERE agent = ? AND outcome = 'run' AND why = ? LIMIT 100",
                (agent, UNFINISHED),
            )
            for row in rows:
                writing.run("UPDATE pulses SET why = ? WHERE position = ?", (_CUT, row["position"]))
                writing.emit(Role.HEARTBEAT, agent, _pulse(row).model_copy(update={"why": _CUT}))
            last = writing.one(_LATEST, (agent,))
            return (
                None if last is None else Beat(last["number"] + last["count"] - 1, moment(last["last_due_at_us"]))
            )

        return await self._database.write(work)

    async def begin(self, agent: str, beat: Beat) -> None:
        """Account for a beat whose work begins now; `record` ends it. Not for the stream yet."""
        await self._database.write(
            lambda writing: _insert(writing, beat, beat, _made(writing, agent, beat, "run", UNFINISHED))
        )

    async def record(
        self,
        agent: str,
        beat: Beat,
        outcome: Outcome,
        why: str = "",
        *,
        llm_calls: int = 0,
        last: Beat | None = None,
    ) -> None:
        """Account for the beats from `beat` to `last` (None: that one)."""
        last = last or beat

        def work(writing: Writing) -> None:
            count = last.number - beat.number + 1
            pulse = _made(writing, agent, beat, outcome, why, count, llm_calls)
            if not (_ended(writing, beat, pulse) if outcome == "run" else _joined(writing, beat, last, pulse)):
                _insert(writing, beat, last, pulse)
            writing.emit(Role.HEARTBEAT, agent, pulse)

        await self._database.write(work)

    async def woken(
        self, agent: str, cause: str, outcome: Literal["run", "deferred"], why: str, calls: int
    ) -> None:
        """Tell what a wake came to."""
        await self._database.write(
            lambda writing: writing.emit(
                Role.HEARTBEAT,
                agent,
                AgentWoken(agent=agent, at=writing.now, cause=cause, outcome=outcome, why=why, llm_calls=calls),
            )
        )

    async def jumped(self, agent: str, seconds: float, decision: str) -> None:
        """Tell that the wall clock moved, and what was decided about the beats."""
        seconds = round(seconds, 3)
        await self._database.write(
            lambda writing: writing.emit(
                Role.HEARTBEAT,
                agent,
                ClockJumped(agent=agent, seconds=seconds, decision=decision, at=writing.now),
            )
        )

    async def tell(self, agent: str, record: Recorded) -> None:
        """Put a record on the stream alone."""
        await self._database.write(lambda writing: writing.emit(Role.HEARTBEAT, agent, record))

    async def recent(self, agent: str, limit: int = 20) -> tuple[PulseRecorded, ...]:
        """Return the newest rows, newest first; idle and skipped beats in a row share one."""

        def rows(reading: Reading) -> list[Row]:
            return reading.all("SELECT * FROM pulses WHERE agent = ? ORDER BY number DESC LIMIT ?", (agent, limit))

        return tuple(_pulse(row) for row in await self._database.read(rows))


def _made(
    writing: Writing, agent: str, beat: Beat, outcome: Outcome, why: str, count: int = 1, llm_calls: int = 0
) -> PulseRecorded:
    return PulseRecorded(
        agent=agent,
        due_at=beat.due_at,
        at=writing.now,
        outcome=outcome,
        why=why,
        count=count,
        llm_calls=llm_calls,
    )


def _insert(writing: Writing, beat: Beat, last: Beat, pulse: PulseRecorded) -> None:
    writing.run(
        "INSERT INTO pulses (agent, number, due_at_us, last_due_at_us, at_us, outcome, why, count, llm_calls)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(pulse.agent, beat.number, microseconds(beat.due_at), microseconds(last.due_at)),
            *(writing.now_us, pulse.outcome, pulse.why, pulse.count, pulse.llm_calls),
        ),
    )


def _joined(writing: Writing, beat: Beat, last: Beat, pulse: PulseRecorded) -> bool:
    """Add beats to the row before them if both are idle, or skipped for one reason."""
    if pulse.outcome == "missed":
        return False
    joined = writing.run(
        "UPDATE pulses SET count = count + ?, last_due_at_us = ?, at_us = ?"
        " WHERE agent = ? AND outcome = ? AND why = ? AND number + count = ?"
        " AND number = (SELECT max(number) FROM pulses WHERE agent = ?)",
        (
            *(pulse.count, microseconds(last.due_at), writing.now_us),
            *(pulse.agent, pulse.outcome, pulse.why, beat.number, pulse.agent),
        ),
    )
    return joined > 0


def _ended(writing: Writing, beat: Beat, pulse: PulseRecorded) -> bool:
    """End a run that was begun."""
    ended = writing.run(
        "UPDATE pulses SET at_us = ?, why = ?, llm_calls = ?"
        " WHERE agent = ? AND number = ? AND outcome = 'run' AND why = ?",
        (writing.now_us, pulse.why, pulse.llm_calls, pulse.agent, beat.number, UNFINISHED),
    )
    return ended > 0


def _pulse(row: Row) -> PulseRecorded:
    return PulseRecorded(
        agent=row["agent"],
        due_at=moment(row["due_at_us"]),
        at=moment(row["at_us"]),
        outcome=row["outcome"],
        why=row["why"],
        count=row["count"],
        llm_calls=row["llm_calls"],
    )
