"""Store an agent's observations, sessions and patterns in the activity database, with their limit."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

from artoo.agents.cognition.consolidation_plan import KEPT, PendingDream
from artoo.agents.cognition.observations import Noted
from artoo.agents.cognition.patterns import Pattern, Seen
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Writing, made, storable
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.roles import Role

logger = logging.getLogger(__name__)

MOST_OBSERVATIONS = 20_000
"""Maximum number of observations that are stored for an agent if its dream cycle does not run."""
READ_AT_ONCE = 10_000
LONGEST_SUMMARY, LONGEST_DETAIL = 4_000, 16_000
"""Maximum number of characters of a session's summary and of its details that are stored."""


@dataclass(frozen=True, slots=True)
class Session:
    """One assignment on which an agent has worked. `id`: the id of the dual loop's task, so that a task that was
    resumed is one session.

    `summary` is shortened to 4,000 characters. `detail` (JSON) is dropped if it has more than 16,000 characters,
    and after a dream cycle.
    """

    id: str
    kind: Literal["task", "mail", "patrol"]
    summary: str
    detail: str = "{}"
    board_task: str | None = None
    mail: str | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """The values by which it is decided whether a dream cycle is due. A time is None if there are no entries."""

    observations: int
    uncounted: int
    oldest_at: datetime | None
    last_cycle_at: datetime | None
    expired: bool
    pending: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The input of a dream cycle. It contains the observations up to the position `last`, and the patterns that
    were counted so far."""

    observations: tuple[Seen, ...]
    patterns: tuple[Pattern, ...]
    last: int


class CognitionStore(Stored):
    """The part of the database that belongs to one agent. `days`: the number of days for which sessions are kept.
    Methods raise ActivityStoreError."""

    def __init__(self, database: Database, agent: str, days: int) -> None:
        super().__init__(database)
        self._agent = agent
        self._days = days

    @writes
    def keep(self, writing: Writing, session: Session, noted: Noted | None) -> bool:
        """Store a session together with its observation, unless it is stored already. Returns False if it was."""
        new = writing.insert(
            "activity",
            once=True,
            id=session.id,
            agent=self._agent,
            kind=session.kind,
            board_task=session.board_task,
            mail=session.mail,
            run=session.id,
            summary=storable(session.summary[:LONGEST_SUMMARY]),
            detail=storable(session.detail) if len(session.detail) <= LONGEST_DETAIL else "{}",
            at_us=writing.now_us,
        )
        # A task that was resumed ends twice with the same id, and must be counted only once.
        if new and noted is not None:
            writing.insert(
                "observations",
                id=session.id,
                agent=self._agent,
                text=storable(noted.text),
                pattern=noted.pattern,
                activity=session.id,
                at_us=writing.now_us,
            )
            self._bound(writing)
        return new > 0

    @reads
    def sessions(self, reading: Reading, limit: int = 20) -> tuple[tuple[datetime, Session], ...]:
        """Return the newest sessions, newest first."""
        rows = reading.all(
            "SELECT * FROM activity WHERE agent = ? ORDER BY position DESC LIMIT ?", (self._agent, limit)
        )
        return tuple((moment(row["at_us"]), made(Session, row)) for row in rows)

    @reads
    def buffer(self, reading: Reading) -> Buffer:
        """Return the values by which it is decided whether a dream cycle is due."""
        row = reading.one(
            "SELECT count(*) AS observations, count(CASE WHEN NOT counted THEN 1 END) AS uncounted,"
            " min(CASE WHEN NOT counted THEN at_us END) AS oldest_at_us,"
            " (SELECT max(at_us) FROM dreams WHERE agent = :agent) AS last_cycle_at_us,"
            " (SELECT count(pending) > 0 FROM dreams WHERE agent = :agent) AS pending,"
            " EXISTS (SELECT 1 FROM activity WHERE agent = :agent AND at_us < :expiry) AS expired"
            " FROM observations WHERE agent = :agent",
            {"agent": self._agent, "expiry": self._expiry(reading)},
        )
        assert row is not None
        return made(Buffer, row)

    @reads
    def snapshot(self, reading: Reading) -> Snapshot:
        """Return the input of a dream cycle."""
        observations = reading.all(
            "SELECT * FROM observations WHERE agent = ? ORDER BY position LIMIT ?", (self._agent, READ_AT_ONCE)
        )
        patterns = reading.all("SELECT * FROM patterns WHERE agent = ? LIMIT 10000", (self._agent,))
        return Snapshot(
            tuple(made(Seen, row) for row in observations),
            tuple(made(Pattern, row) for row in patterns),
            observations[-1]["position"] if observations else 0,
        )

    @writes
    def commit(
        self, writing: Writing, last: int, patterns: tuple[Pattern, ...], pending: PendingDream
    ) -> PendingDream:
        """Store the counts and promotions, delete old entries, and store the steps that are left to do, in one
        transaction.

        Returns `pending` completed by the numbers for the report.
        """
        # Two cycles of one agent at the same time would count the same observations twice.
        writing.alone(f"dream of {self._agent}")
        writing.run("DELETE FROM patterns WHERE agent = ?", (self._agent,))
        for each in patterns:
            values = asdict(each)
            first, newest = microseconds(values.pop("first_at")), microseconds(values.pop("last_at"))
            writing.insert("patterns", agent=self._agent, first_at_us=first, last_at_us=newest, **values)
        purged = self._purge(writing, last)
        kept = writing.count("SELECT count(*) FROM observations WHERE agent = ?", (self._agent,))
        report = pending.report.model_copy(update={"kept": kept, "purged": purged})
        whole = pending.model_copy(update={"report": report})
        writing.insert(
            "dreams",
            agent=self._agent,
            report=report.model_dump_json(),
            pending=whole.model_dump_json(),
            at_us=writing.now_us,
        )
        return whole

    @reads
    def pending(self, reading: Reading) -> PendingDream | None:
        """Return the cycle whose file or entries in shared memory are not written yet. Return None if there is
        none."""
        query = "SELECT pending FROM dreams WHERE agent = ? AND pending IS NOT NULL"
        row = reading.one(query, (self._agent,))
        return None if row is None else PendingDream.model_validate_json(row["pending"])

    @writes
    def settle(self, writing: Writing, report: DreamCycleReport) -> None:
        """Mark the pending cycle as finished, and publish its report."""
        settled = "UPDATE dreams SET pending = NULL WHERE agent = ? AND pending IS NOT NULL"
        if writing.run(settled, (self._agent,)):
            writing.emit(Role.HEARTBEAT, self._agent, report)

    @writes
    def tell(self, writing: Writing, report: DreamCycleReport) -> None:
        """Publish the report of a cycle that changed nothing."""
        writing.emit(Role.HEARTBEAT, self._agent, report)

    def _bound(self, writing: Writing) -> None:
        dropped = writing.run(
            "DELETE FROM observations WHERE agent = ? AND position <= (SELECT position FROM observations"
            " WHERE agent = ? ORDER BY position DESC LIMIT 1 OFFSET ?)",
            (self._agent, self._agent, MOST_OBSERVATIONS),
        )
        if dropped:
            logger.warning(
                "%s has more than %d observations and no dream cycle: the oldest goes; let `artoo serve` run",
                self._agent,
                MOST_OBSERVATIONS,
            )

    def _purge(self, writing: Writing, last: int) -> int:
        """Delete old observations except the newest ten, the details of the sessions that they came from, and
        entries that have expired."""
        agent, expiry = self._agent, self._expiry(writing)
        consolidated = writing.run(
            "UPDATE activity SET consolidated = TRUE, detail = '{}' WHERE NOT consolidated AND id IN"
            " (SELECT activity FROM observations WHERE agent = ? AND position <= ?)",
            (agent, last),
        )
        writing.run("UPDATE observations SET counted = TRUE WHERE agent = ? AND position <= ?", (agent, last))
        observations = writing.run(
            "DELETE FROM observations WHERE agent = ? AND position <= ? AND position NOT IN"
            " (SELECT position FROM observations WHERE agent = ? AND position <= ? ORDER BY position DESC LIMIT ?)",
            (agent, last, agent, last, KEPT),
        )
        sessions = writing.run("DELETE FROM activity WHERE agent = ? AND at_us < ?", (agent, expiry))
        writing.run("DELETE FROM dreams WHERE agent = ? AND at_us < ? AND pending IS NULL", (agent, expiry))
        writing.run(
            "DELETE FROM pulses WHERE agent = ? AND at_us < ?"
            " AND number < (SELECT max(number) FROM pulses WHERE agent = ?)",
            (agent, expiry, agent),
        )
        return consolidated + observations + sessions

    def _expiry(self, reading: Reading) -> int:
        return microseconds(reading.now - timedelta(days=self._days))
