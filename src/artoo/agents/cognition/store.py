"""Observations, activity and patterns of one agent in the activity database."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from artoo.agents.cognition.consolidation_plan import KEPT, PendingDream
from artoo.agents.cognition.observations import Noted
from artoo.agents.cognition.patterns import Pattern, Seen
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Row, Writing, storable
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.roles import Role

logger = logging.getLogger(__name__)

MOST_OBSERVATIONS = 20_000
"""Observations that are kept for an agent whose dream cycle does not run."""
READ_AT_ONCE = 10_000
LONGEST_SUMMARY, LONGEST_DETAIL = 4_000, 16_000
"""Characters kept of a session."""


@dataclass(frozen=True, slots=True)
class Session:
    """One piece of work of an agent. `id`: the dual loop's task, so that a resumed task is one session.

    `summary` is cut to 4,000 characters; `detail` (JSON) is left out beyond 16,000, and after a dream cycle.
    """

    id: str
    kind: Literal["task", "mail", "patrol"]
    summary: str
    detail: str = "{}"
    board_task: str | None = None
    mail: str | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """The state by which a dream cycle is due. Times are None when there is nothing to take them from."""

    observations: int
    uncounted: int
    oldest_at: datetime | None
    last_cycle_at: datetime | None
    expired: bool
    pending: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a dream cycle works on: observations up to `last`, and the patterns counted so far."""

    observations: tuple[Seen, ...]
    patterns: tuple[Pattern, ...]
    last: int


class CognitionStore:
    """One agent's part of the database. `days`: how long sessions are kept. Methods raise ActivityStoreError."""

    def __init__(self, database: Database, agent: str, days: int) -> None:
        self._database = database
        self._agent = agent
        self._days = days

    async def keep(self, session: Session, noted: Noted | None) -> bool:
        """Keeps a session and what it left to be remembered, both or neither, once. False: it was there."""
        return await self._database.write(lambda writing: self._keep(writing, session, noted))

    async def sessions(self, limit: int = 20) -> tuple[tuple[datetime, Session], ...]:
        """The newest sessions, newest first."""
        rows = await self._database.read(
            lambda reading: reading.all(
                "SELECT * FROM activity WHERE agent = ? ORDER BY position DESC LIMIT ?", (self._agent, limit)
            )
        )
        return tuple((moment(row["at_us"]), _session(row)) for row in rows)

    async def buffer(self) -> Buffer:
        """How the buffer stands."""
        return await self._database.read(self._buffer)

    async def snapshot(self) -> Snapshot:
        """What a cycle works on."""
        return await self._database.read(self._snapshot)

    async def commit(self, last: int, patterns: tuple[Pattern, ...], pending: PendingDream) -> PendingDream:
        """Counts, promotes and purges, all or nothing; what remains to be done is kept with it.

        Returns `pending` with the report's numbers filled in.
        """
        return await self._database.write(lambda writing: self._commit(writing, last, patterns, pending))

    async def pending(self) -> PendingDream | None:
        """The cycle whose file or memory was not written yet."""
        row = await self._database.read(
            lambda reading: reading.one(
                "SELECT pending FROM dreams WHERE agent = ? AND pending IS NOT NULL", (self._agent,)
            )
        )
        return None if row is None else PendingDream.model_validate_json(row["pending"])

    async def settle(self, report: DreamCycleReport) -> None:
        """The file and memory have it: nothing is pending any more, and the report goes on the stream."""

        def work(writing: Writing) -> None:
            settled = writing.run(
                "UPDATE dreams SET pending = NULL WHERE agent = ? AND pending IS NOT NULL", (self._agent,)
            )
            if settled:
                writing.emit(Role.HEARTBEAT, self._agent, report)

        await self._database.write(work)

    async def tell(self, report: DreamCycleReport) -> None:
        """A report of a cycle that changed nothing."""
        await self._database.write(lambda writing: writing.emit(Role.HEARTBEAT, self._agent, report))

    def _keep(self, writing: Writing, session: Session, noted: Noted | None) -> bool:
        new = writing.run(
            "INSERT INTO activity (id, agent, kind, board_task, mail, run, summary, detail, at_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (
                session.id,
                self._agent,
                session.kind,
                session.board_task,
                session.mail,
                session.id,
                storable(session.summary[:LONGEST_SUMMARY]),
                storable(session.detail) if len(session.detail) <= LONGEST_DETAIL else "{}",
                writing.now_us,
            ),
        )
        if new and noted is not None:
            writing.run(
                "INSERT INTO observations (id, agent, text, pattern, activity, at_us) VALUES (?, ?, ?, ?, ?, ?)",
                (session.id, self._agent, storable(noted.text), noted.pattern, session.id, writing.now_us),
            )
            self._bound(writing)
        return new > 0

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

    def _buffer(self, reading: Reading) -> Buffer:
        row = reading.one(
            "SELECT count(*) AS observations, count(CASE WHEN NOT counted THEN 1 END) AS uncounted,"
            " min(CASE WHEN NOT counted THEN at_us END) AS oldest FROM observations WHERE agent = ?",
            (self._agent,),
        )
        last = reading.one(
            "SELECT max(at_us) AS at, count(pending) AS pending FROM dreams WHERE agent = ?",
            (self._agent,),
        )
        expired = reading.one(
            "SELECT 1 FROM activity WHERE agent = ? AND at_us < ? LIMIT 1", (self._agent, self._expiry(reading))
        )
        assert row is not None
        assert last is not None
        return Buffer(
            row["observations"],
            row["uncounted"],
            None if row["oldest"] is None else moment(row["oldest"]),
            None if last["at"] is None else moment(last["at"]),
            expired is not None,
            bool(last["pending"]),
        )

    def _snapshot(self, reading: Reading) -> Snapshot:
        observations = reading.all(
            "SELECT * FROM observations WHERE agent = ? ORDER BY position LIMIT ?", (self._agent, READ_AT_ONCE)
        )
        patterns = reading.all("SELECT * FROM patterns WHERE agent = ? LIMIT 10000", (self._agent,))
        return Snapshot(
            tuple(_seen(row) for row in observations),
            tuple(_pattern(row) for row in patterns),
            observations[-1]["position"] if observations else 0,
        )

    def _commit(
        self, writing: Writing, last: int, patterns: tuple[Pattern, ...], pending: PendingDream
    ) -> PendingDream:
        writing.alone(f"dream of {self._agent}")
        writing.run("DELETE FROM patterns WHERE agent = ?", (self._agent,))
        for each in patterns:
            _insert_pattern(writing, self._agent, each)
        purged = self._purge(writing, last)
        kept = writing.count("SELECT count(*) FROM observations WHERE agent = ?", (self._agent,))
        report = pending.report.model_copy(update={"kept": kept, "purged": purged})
        whole = pending.model_copy(update={"report": report})
        writing.run(
            "INSERT INTO dreams (agent, report, pending, at_us) VALUES (?, ?, ?, ?)",
            (self._agent, report.model_dump_json(), whole.model_dump_json(), writing.now_us),
        )
        return whole

    def _purge(self, writing: Writing, last: int) -> int:
        """Drops observations but the last ten, what sessions they came from held in detail, and what is too old."""
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


def _insert_pattern(writing: Writing, agent: str, each: Pattern) -> None:
    writing.run(
        "INSERT INTO patterns (agent, id, pattern, text, wording, seen, promoted, first_at_us, last_at_us)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            agent,
            each.id,
            each.pattern,
            each.text,
            each.wording,
            each.seen,
            each.promoted,
            microseconds(each.first_at),
            microseconds(each.last_at),
        ),
    )


def _seen(row: Row) -> Seen:
    return Seen(row["position"], row["text"], row["pattern"], moment(row["at_us"]), bool(row["counted"]))


def _pattern(row: Row) -> Pattern:
    first, last = moment(row["first_at_us"]), moment(row["last_at_us"])
    return Pattern(
        row["id"],
        row["pattern"],
        row["text"],
        row["seen"],
        first,
        last,
        bool(row["promoted"]),
        row["wording"],
    )


def _session(row: Row) -> Session:
    return Session(row["id"], row["kind"], row["summary"], row["detail"], row["board_task"], row["mail"])
