"""The Dreamer's side of the store on PostgreSQL (`ports.dream`), one machine of a cluster at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, Level, Megram, Potentials, TLayerProposal
from artoo.contracts.tags import LOCAL, Pair, tool_of
from artoo.control.potentials import Sums, classify
from artoo.memory import keys
from artoo.memory.maintenance import PAIRS_PER_INTENT, REPORTS
from artoo.memory.postgres import changing, reading, rows, turn
from artoo.memory.postgres.sink import append
from artoo.memory.signal import DAY_US, microseconds
from artoo.ports.clock import Clock
from artoo.ports.dream import Cluster, Fading, Slice, Standing

if TYPE_CHECKING:
    from datetime import datetime

    from artoo.memory.postgres.database import Connection, Database

T = TypeVar("T")

_FADING = b"""
SELECT id, f, k, born_us FROM memory_megrams WHERE id > %s AND level <> 'C' ORDER BY id LIMIT %s
"""
_PAIRS = b"""
SELECT DISTINCT space, entity FROM memory_sums WHERE (space, entity) > (%s, %s) ORDER BY space, entity LIMIT %s
"""
_ABOUT = b"SELECT DISTINCT entity FROM memory_sums WHERE space = %s ORDER BY entity LIMIT %s"
_KINDS = b"""
SELECT DISTINCT entity FROM memory_sums
WHERE space = %s AND entity >= 'intent:'::bytea AND entity < 'intent;'::bytea ORDER BY entity LIMIT %s
"""
_STANDING = b"SELECT id, record, recalled_us FROM memory_megrams WHERE level = 'C' AND id > %s ORDER BY id LIMIT %s"
_GONE = b"""
DELETE FROM memory_worked AS worked WHERE NOT EXISTS (
    SELECT FROM memory_sums AS sums WHERE sums.space = worked.space AND sums.entity = worked.entity
)
"""
_WORKED = b"SELECT intent, space, entity FROM memory_worked ORDER BY intent, space, entity LIMIT %s"
_MARK = b"""
INSERT INTO memory_marks (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_PROPOSE = b"INSERT INTO memory_proposals (id, status, proposal) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
_UNMARK = b"DELETE FROM memory_marks WHERE name = %s"
_OLD_REPORTS = b"""
DELETE FROM memory_reports WHERE id NOT IN (SELECT id FROM memory_reports ORDER BY id DESC LIMIT %s)
"""


class PostgresDreams:
    """Implements `ports.dream.DreamStore`. Changes things only while it holds its turn."""

    def __init__(self, database: Database, clock: Clock, *, lease_seconds: float = turn.LEASE_SECONDS) -> None:
        self._database = database
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._epoch: int | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """See the port."""
        seconds = self._lease_seconds
        self._epoch = epoch = await self._read(lambda connection: turn.take(connection, seconds))
        try:
            yield
        finally:
            self._epoch = None
            # One that cannot be given back ends by itself.
            with contextlib.suppress(MemoryStoreError):
                await self._read(lambda connection: turn.give_back(connection, epoch))

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """See the port."""
        now_us = microseconds(self._clock.now())
        listed = await self._read(lambda connection: connection.execute(_FADING, (after or "", limit)).fetchall())
        entries = [
            Fading(str(row["id"]), row["f"], row["k"], (now_us - int(row["born_us"])) / DAY_US) for row in listed
        ]
        last = entries[-1].megram_id if len(entries) == limit else None
        return Slice(tuple(entry for entry in entries if select(entry)), len(entries), last)

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """See the port."""
        now_us = microseconds(self._clock.now())

        def work(connection: Connection) -> tuple[Megram, ...]:
            doomed = [
                megram.id
                for megram in changing.locked(connection, megram_ids)
                if not megram.is_rule and select(_fading(megram, now_us))
            ]
            return tuple(changing.remove(connection, doomed)) if doomed else ()

        return await self._write(work)

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """See the port."""
        now_us = microseconds(self._clock.now())
        start = tuple(map(bytes.fromhex, after.split(":"))) if after is not None else (b"", b"")

        def work(connection: Connection) -> Slice[Pair]:
            found = connection.execute(_PAIRS, (*start, limit)).fetchall()
            parts = [(bytes(row["space"]), bytes(row["entity"])) for row in found]
            pairs = reading.named(connection, parts)
            live = reading.sums(connection, pairs, now_us, direct=True)
            strong = (pair for pair, sums in zip(pairs, live, strict=True) if select(sums.attention, sums.decision))
            last = ":".join(part.hex() for part in parts[-1]) if len(parts) == limit else None
            return Slice(tuple(strong), len(parts), last)

        return await self._snapshot(work)

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """See the port."""
        (found,) = await self._clusters(lambda connection: [pair], newest)
        return found

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """See the port."""
        part = keys.escape(space)

        def pairs(connection: Connection) -> list[Pair]:
            found = connection.execute(_ABOUT, (part, limit)).fetchall()
            return reading.named(connection, [(part, bytes(row["entity"])) for row in found])

        return await self._clusters(pairs, newest)

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """See the port."""
        now_us, part = microseconds(self._clock.now()), keys.escape(tool.space)

        def work(connection: Connection) -> tuple[Potentials, ...]:
            found = connection.execute(_KINDS, (part, limit)).fetchall()
            pairs = reading.named(connection, [(part, bytes(row["entity"])) for row in found])
            return tuple(map(reading.potentials, pairs, reading.sums(connection, pairs, now_us)))

        return await self._snapshot(work)

    async def standing(self, after: str | None, limit: int) -> Slice[Standing]:
        """See the port."""
        now_us = microseconds(self._clock.now())

        def work(connection: Connection) -> Slice[Standing]:
            found = connection.execute(_STANDING, (after or "", limit)).fetchall()
            rules = [rows.megram(row) for row in found]
            live = reading.sums(connection, [rule.pair for rule in rules], now_us)
            standing = (
                Standing(rule, sums.attention, sums.decision) for rule, sums in zip(rules, live, strict=True)
            )
            return Slice(tuple(standing), len(rules), rules[-1].id if len(rules) == limit else None)

        return await self._snapshot(work)

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """See the port."""

        def work(connection: Connection) -> bool:
            rule = next(iter(changing.locked(connection, [rule_id])), None)
            if rule is None or not rule.is_rule:
                return False
            demoted = rule.model_copy(update={"level": Level.KNOWLEDGE, "k": k, "created_at": at})
            return changing.replace(connection, demoted)

        return await self._write(work)

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """See the port."""

        def work(connection: Connection) -> None:
            connection.execute(_MARK, (keys.escape(mark), value))
            append(connection, [megram])

        await self._write(work)

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """See the port. Pairs whose evidence is gone are taken off the list."""
        now_us = microseconds(self._clock.now())
        if self._epoch is not None:
            await self._write(lambda connection: connection.execute(_GONE))

        def work(connection: Connection) -> dict[str, set[str]]:
            found = connection.execute(_WORKED, (limit * PAIRS_PER_INTENT,)).fetchall()
            parts = dict.fromkeys((bytes(row["space"]), bytes(row["entity"])) for row in found)
            pairs = {part: pair for part in parts for pair in reading.named(connection, [part])}
            good = _exploited(pairs, reading.sums(connection, list(pairs.values()), now_us))
            listed = [
                (intent, part)
                for row in found
                if (intent := keys.unescape(bytes(row["intent"]))) is not None
                and (part := (bytes(row["space"]), bytes(row["entity"]))) in good
            ]
            macros = [(pairs[part], Pair(f"intent:{intent}", LOCAL)) for intent, part in listed]
            told = reading.told_by_kind(connection, macros, now_us)
            worked: dict[str, set[str]] = {}
            for (intent, part), by_kind in zip(listed, told, strict=True):
                if not by_kind and (intent in worked or len(worked) < limit):
                    worked.setdefault(intent, set()).add(good[part])
            return worked

        return {intent: frozenset(tools) for intent, tools in (await self._snapshot(work)).items()}

    async def mark(self, name: str) -> str | None:
        """See the port."""
        query = b"SELECT value FROM memory_marks WHERE name = %s"
        row = await self._read(lambda connection: connection.execute(query, (keys.escape(name),)).fetchone())
        return str(row["value"]) if row is not None else None

    async def set_mark(self, name: str, value: str | None) -> None:
        """See the port."""
        key = keys.escape(name)
        if value is None:
            await self._write(lambda connection: connection.execute(_UNMARK, (key,)))
        else:
            await self._write(lambda connection: connection.execute(_MARK, (key, value)))

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """See the port."""
        text = proposal.model_dump_json()

        def work(connection: Connection) -> None:
            connection.execute(_MARK, (keys.escape(mark), proposal.id))
            connection.execute(_PROPOSE, (proposal.id, proposal.status, text))

        await self._write(work)

    async def keep_report(self, report: DreamReport) -> None:
        """See the port."""
        text = report.model_dump_json()

        def work(connection: Connection) -> None:
            connection.execute(
                b"INSERT INTO memory_reports (id, report) VALUES (%s, %s) ON CONFLICT (id) DO NOTHING",
                (report.dream_id, text),
            )
            connection.execute(_OLD_REPORTS, (REPORTS,))

        await self._write(work)

    async def _clusters(self, pairs: Callable[[Connection], Sequence[Pair]], newest: int) -> tuple[Cluster, ...]:
        now_us = microseconds(self._clock.now())

        def work(connection: Connection) -> tuple[Cluster, ...]:
            listed = pairs(connection)
            live = reading.sums(connection, listed, now_us, direct=True)
            latest = reading.placed(reading.ask_newest(connection, listed, newest))
            return tuple(
                Cluster(pair, live[at].attention, live[at].decision, tuple(latest.get(at, ())))
                for at, pair in enumerate(listed)
            )

        return await self._snapshot(work)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self._database.read, work)

    async def _snapshot(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self._database.snapshot, work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        epoch, seconds = self._epoch, self._lease_seconds
        if epoch is None:
            raise MemoryStoreError("Only whoever holds the turn to dream may change memory as the Dreamer does.")

        def fenced(connection: Connection) -> T:
            turn.keep(connection, epoch, seconds)
            return work(connection)

        return await asyncio.to_thread(self._database.write, fenced)


def _fading(megram: Megram, now_us: int) -> Fading:
    return Fading(megram.id, megram.f, megram.k, (now_us - microseconds(megram.created_at)) / DAY_US)


def _exploited(pairs: dict[tuple[bytes, bytes], Pair], live: Sequence[Sums]) -> dict[tuple[bytes, bytes], str]:
    """The tools whose pairs helped more often than they failed."""
    return {
        part: tool
        for (part, pair), sums in zip(pairs.items(), live, strict=True)
        if (tool := tool_of(pair)) is not None and classify(sums) == "exploit"
    }
