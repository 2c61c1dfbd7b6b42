"""Record each beat in the activity database as run, idle or skipped, with its number and its reason.

Each beat is recorded once, and published on the stream.

Beats are numbered, so that none is counted twice or left out, whatever the clock does. Idle beats in a row, and
beats in a row that are skipped for the same reason, share one row, so that the ledger of an idle team does not
grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Writing, made
from artoo.contracts.agents import PulseRecorded, Recorded
from artoo.contracts.roles import Role

UNFINISHED = "not finished"
"""The field `why` of a beat whose work has not ended. Either it is still running, or its process has died."""
_CUT = "cut short: the process ended"

Outcome = Literal["run", "idle", "skipped", "missed"]

_NEWEST = "SELECT * FROM pulses WHERE agent = ? ORDER BY number DESC LIMIT ?"


@dataclass(frozen=True, slots=True)
class Beat:
    """One beat. `number` counts from 1. It is never reused, even if the clock jumps. `due_at` is in UTC."""

    number: int
    due_at: datetime

    def later(self, beats: int, interval: float) -> Beat:
        """Return the beat that is `beats` intervals later."""
        return Beat(self.number + beats, self.due_at + timedelta(seconds=beats * interval))

    def due(self, now: datetime, interval: float) -> int:
        """Return how many of the beats after this one are due by `now`."""
        return max(0, (now - self.due_at) // timedelta(seconds=interval))

    def shifted(self, seconds: float) -> Beat:
        """Return the same beat moved by `seconds`, which is used after the clock was changed."""
        return Beat(self.number, self.due_at + timedelta(seconds=seconds))


class Pulses(Stored):
    """The recorded beats of all agents. Every method raises ActivityStoreError."""

    @writes
    def resumed(self, writing: Writing, agent: str) -> Beat | None:
        """Return the last beat that was recorded. Records that dead processes left unfinished are ended before."""
        cut = "UPDATE pulses SET why = ? WHERE agent = ? AND outcome = 'run' AND why = ? RETURNING *"
        for row in writing.all(cut, (_CUT, agent, UNFINISHED)):
            writing.emit(Role.HEARTBEAT, agent, made(PulseRecorded, row))
        # A row may stand for several beats in a row, so the last number is computed from their count.
        last = writing.one(_NEWEST, (agent, 1))
        return None if last is None else Beat(last["number"] + last["count"] - 1, moment(last["last_due_at_us"]))

    @writes
    def begin(self, writing: Writing, agent: str, beat: Beat) -> None:
        """Record that the work of a beat begins. Nothing is published on the stream, and `record` ends this record.
        `record` ends it."""
        _insert(writing, agent, beat, beat, "run", UNFINISHED)

    @writes
    def record(
        self,
        writing: Writing,
        agent: str,
        beat: Beat,
        outcome: Outcome,
        why: str = "",
        *,
        llm_calls: int = 0,
        last: Beat | None = None,
    ) -> None:
        """Record the beats from `beat` to `last`. If `last` is None, record only `beat`."""
        last = last or beat
        count = last.number - beat.number + 1
        if outcome == "run":
            known = writing.run(
                "UPDATE pulses SET at_us = ?, why = ?, llm_calls = ? WHERE agent = ? AND number = ? AND why = ?",
                (writing.now_us, why, llm_calls, agent, beat.number, UNFINISHED),
            )
        else:
            # Idle beats in a row, and beats that are skipped for the same reason, extend the last row.
            known = outcome != "missed" and writing.run(
                "UPDATE pulses SET count = count + ?, last_due_at_us = ?, at_us = ?"
                " WHERE agent = ? AND outcome = ? AND why = ? AND number + count = ?"
                " AND number = (SELECT max(number) FROM pulses WHERE agent = ?)",
                (count, microseconds(last.due_at), writing.now_us, agent, outcome, why, beat.number, agent),
            )
        if not known:
            _insert(writing, agent, beat, last, outcome, why, llm_calls)
        due, at = beat.due_at, writing.now
        pulse = PulseRecorded(
            agent=agent, due_at=due, at=at, outcome=outcome, why=why, count=count, llm_calls=llm_calls
        )
        writing.emit(Role.HEARTBEAT, agent, pulse)

    @writes
    def tell(self, writing: Writing, agent: str, record: Recorded) -> None:
        """Publish a record on the stream without storing it. The time in it is that of the database."""
        writing.emit(Role.HEARTBEAT, agent, record.model_copy(update={"at": writing.now}))

    @reads
    def recent(self, reading: Reading, agent: str, limit: int = 20) -> tuple[PulseRecorded, ...]:
        """Return the newest rows, newest first. Several idle or skipped beats may share a row."""
        return tuple(made(PulseRecorded, row) for row in reading.all(_NEWEST, (agent, limit)))


def _insert(
    writing: Writing, agent: str, beat: Beat, last: Beat, outcome: Outcome, why: str, llm_calls: int = 0
) -> None:
    writing.insert(
        "pulses",
        agent=agent,
        number=beat.number,
        due_at_us=microseconds(beat.due_at),
        last_due_at_us=microseconds(last.due_at),
        at_us=writing.now_us,
        outcome=outcome,
        why=why,
        count=last.number - beat.number + 1,
        llm_calls=llm_calls,
    )
