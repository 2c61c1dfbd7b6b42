"""The ledger of beats in the activity database.

Beats are numbered, so that one is never counted twice and none is left out, whatever the clock does. Idle beats in
a row, and beats that were skipped for one reason, share a row: an idle team's ledger does not grow.
"""

from __future__ import annotations

from artoo.agents.heartbeat.beat_accounting import UNFINISHED
from artoo.agents.heartbeat.beat_grid import Beat
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.agents import PulseRecorded, Recorded
from artoo.contracts.roles import Role

_LATEST = "SELECT * FROM pulses WHERE agent = ? ORDER BY number DESC LIMIT 1"


class Pulses:
    """Implements `accounts.PulseLedger`. Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last(self, agent: str) -> Beat | None:
        """See PulseLedger."""
        row = await self._database.read(lambda reading: reading.one(_LATEST, (agent,)))
        return None if row is None else Beat(row["number"] + row["count"] - 1, moment(row["last_due_at_us"]))

    async def begin(self, beat: Beat, pulse: PulseRecorded) -> None:
        """See PulseLedger."""
        await self._database.write(lambda writing: _insert(writing, beat, beat, pulse))

    async def record(self, beat: Beat, pulse: PulseRecorded, *, last: Beat | None = None) -> None:
        """See PulseLedger."""

        def work(writing: Writing) -> None:
            if not (_ended(writing, beat, pulse) if pulse.outcome == "run" else _joined(writing, beat, pulse)):
                _insert(writing, beat, last or beat, pulse)
            writing.emit(Role.HEARTBEAT, pulse.agent, pulse)

        await self._database.write(work)

    async def cut_off(self, agent: str, why: str) -> int:
        """See PulseLedger."""
        return await self._database.write(lambda writing: _cut_off(writing, agent, why))

    async def tell(self, agent: str, record: Recorded) -> None:
        """See PulseLedger."""
        await self._database.write(lambda writing: writing.emit(Role.HEARTBEAT, agent, record))

    async def recent(self, agent: str, limit: int = 20) -> tuple[PulseRecorded, ...]:
        """The newest rows, newest first; idle and skipped beats in a row share one."""

        def rows(reading: Reading) -> list[Row]:
            return reading.all("SELECT * FROM pulses WHERE agent = ? ORDER BY number DESC LIMIT ?", (agent, limit))

        return tuple(_pulse(row) for row in await self._database.read(rows))


def _insert(writing: Writing, beat: Beat, last: Beat, pulse: PulseRecorded) -> None:
    writing.run(
        "INSERT INTO pulses (agent, number, due_at_us, last_due_at_us, at_us, outcome, why, count, llm_calls)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            pulse.agent,
            beat.number,
            microseconds(beat.due_at),
            microseconds(last.due_at),
            microseconds(pulse.at),
            pulse.outcome,
            pulse.why,
            pulse.count,
            pulse.llm_calls,
        ),
    )


def _joined(writing: Writing, beat: Beat, pulse: PulseRecorded) -> bool:
    """Adds a beat to the row before it when both are idle, or skipped for one reason."""
    if pulse.outcome == "missed":
        return False
    return (
        writing.run(
            "UPDATE pulses SET count = count + 1, last_due_at_us = ?, at_us = ?"
            " WHERE agent = ? AND outcome = ? AND why = ? AND number + count = ?"
            " AND number = (SELECT max(number) FROM pulses WHERE agent = ?)",
            (
                microseconds(beat.due_at),
                microseconds(pulse.at),
                pulse.agent,
                pulse.outcome,
                pulse.why,
                beat.number,
                pulse.agent,
            ),
        )
        > 0
    )


def _ended(writing: Writing, beat: Beat, pulse: PulseRecorded) -> bool:
    """Ends a run that was begun."""
    return (
        writing.run(
            "UPDATE pulses SET at_us = ?, why = ?, llm_calls = ?"
            " WHERE agent = ? AND number = ? AND outcome = 'run' AND why = ?",
            (microseconds(pulse.at), pulse.why, pulse.llm_calls, pulse.agent, beat.number, UNFINISHED),
        )
        > 0
    )


def _cut_off(writing: Writing, agent: str, why: str) -> int:
    rows = writing.all(
        "SELECT * FROM pulses WHERE agent = ? AND outcome = 'run' AND why = ? LIMIT 100", (agent, UNFINISHED)
    )
    for row in rows:
        writing.run("UPDATE pulses SET why = ? WHERE position = ?", (why, row["position"]))
        writing.emit(Role.HEARTBEAT, agent, _pulse(row).model_copy(update={"why": why}))
    return len(rows)


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
