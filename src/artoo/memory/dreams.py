"""The Dreamer's reads and writes in the store, with the lease of a pass and the retained reports.

The changes are atomic and made in small slices. Only one Dreamer can work at a time. It implements `ports.dream`.

The Dreamer that works holds a lease, whose time is measured by the clock of the store. The lease has an epoch.
Every write of the Dreamer checks this epoch. If a machine was suspended while its lease expired, it therefore finds
that its epoch is outdated, and changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TypeVar

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, Level, Megram, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import LOCAL, Pair, tool_of
from artoo.memory import keys, reading, tables
from artoo.memory.signal import DAY_US, microseconds
from artoo.ports.clock import Clock
from artoo.ports.dream import Cluster, DreamingElsewhere, Fading, RuleEvidence, Slice
from artoo.store.query import Engine, Query, first

LEASE_SECONDS = 300.0
"""Number of seconds for which a lease lasts. It is longer than the time that a pass waits for running tasks between
two slices, and at most the time until the next pass."""
REPORTS = 100
PAIRS_PER_INTENT = 200

T = TypeVar("T")

_TAKE = """
INSERT INTO memory_turns (name, holder, epoch, until_us) VALUES ('dreamer', ?, 1, now_us() + ?)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder, epoch = memory_turns.epoch + 1, until_us = excluded.until_us
WHERE memory_turns.until_us <= now_us() OR memory_turns.until_us > now_us() + ? OR memory_turns.holder = ?
RETURNING epoch
"""
"""Takes the lease if it has expired, if a clock was set back, or if its holder is known to be dead."""
_HOLDER = "SELECT holder, (until_us - now_us()) / 1000000 AS seconds FROM memory_turns WHERE name = 'dreamer'"
_KEEP = (
    "UPDATE memory_turns SET until_us = now_us() + ? WHERE name = 'dreamer' AND epoch = ? AND until_us > now_us()"
)
_GIVE_BACK = "UPDATE memory_turns SET until_us = 0 WHERE name = 'dreamer' AND epoch = ?"
_FADING = "SELECT id, f, k, born_us FROM memory_megrams WHERE id > ? AND level <> 'C' ORDER BY id LIMIT ?"
PAIRS = "SELECT DISTINCT space, entity FROM memory_sums WHERE (space, entity) > (?, ?) ORDER BY 1, 2 LIMIT ?"
_ABOUT = "SELECT DISTINCT space, entity FROM memory_sums WHERE space = ? ORDER BY entity LIMIT ?"
_KINDS = """
SELECT DISTINCT space, entity FROM memory_sums WHERE space = ? AND entity >= ? AND entity < ?
ORDER BY entity LIMIT ?
"""
_STANDING = f"{reading.MEGRAM} m.level = 'C' AND m.id > ? ORDER BY m.id LIMIT ?"
_WORKED = "SELECT intent, space, entity FROM memory_worked ORDER BY intent, space, entity LIMIT ?"
_GONE = """
DELETE FROM memory_worked WHERE NOT EXISTS (
    SELECT 1 FROM memory_sums AS s WHERE s.space = memory_worked.space AND s.entity = memory_worked.entity
)
"""
_PROPOSE = "INSERT INTO memory_proposals (id, status, proposal) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
_REPORT = "INSERT INTO memory_reports (id, report) VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
_OLD_REPORTS = """
DELETE FROM memory_reports WHERE id NOT IN (SELECT id FROM memory_reports ORDER BY id DESC LIMIT ?)
"""


class Dreams:
    """The implementation of `ports.dream.DreamStore`. It writes only while it holds the lease."""

    def __init__(self, engine: Engine, clock: Clock, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._engine = engine
        self._clock = clock
        self._lease_us = round(lease_seconds * 1e6)
        self._epoch: int | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Implement `DreamStore.turn`."""
        self._epoch = epoch = await asyncio.to_thread(self._engine.write, self._take)
        try:
            yield
        finally:
            self._epoch = None
            # If the lease cannot be released, it expires by itself.
            with suppress(MemoryStoreError):
                await asyncio.to_thread(self._engine.write, lambda query: query.run(_GIVE_BACK, (epoch,)))

    def _take(self, query: Query) -> int:
        # If the holder is known to be dead, the lease is taken without waiting for its end.
        held = first(query.all(_HOLDER))
        dead = str(held["holder"]) if held is not None and _is_dead(str(held["holder"])) else ""
        holder = f"{socket.gethostname()} ({os.getpid()})"
        row = first(query.all(_TAKE, (holder, self._lease_us, round(LEASE_SECONDS * 1e6), dead)))
        if row is not None:
            return int(row["epoch"])
        named = f"{held['holder']}, for {held['seconds']} s more at most," if held is not None else "Another one"
        raise DreamingElsewhere(f"{named} is dreaming over this store. Try again when it has ended.")

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """Implement `DreamStore.fading`."""
        rows = await self._read(lambda query: query.all(_FADING, (after or "", limit)))
        now_us = self._now_us()
        found = [Fading(row["id"], row["f"], row["k"], (now_us - row["born_us"]) / DAY_US) for row in rows]
        last = found[-1].megram_id if len(found) == limit else None
        return Slice(tuple(each for each in found if select(each)), len(found), last)

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """Implement `DreamStore.forget`."""
        now_us = self._now_us()

        def faded(megram: Megram) -> bool:
            days = (now_us - microseconds(megram.created_at)) / DAY_US
            return not megram.is_rule and select(Fading(megram.id, megram.f, megram.k, days))

        def work(query: Query) -> tuple[Megram, ...]:
            known = reading.get(query, megram_ids)
            return tuple(tables.remove(query, [each.id for each in known.values() if faded(each)]))

        return await self._write(work)

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """Implement `DreamStore.strong`."""
        start = tuple(map(bytes.fromhex, after.split(":"))) if after is not None else (b"", b"")

        def work(query: Query) -> Slice[Pair]:
            rows = query.all(PAIRS, (*start, limit))
            pairs = reading.named(query, rows)
            live = reading.sums(query, pairs, self._now_us(), direct=True)
            found = (pair for pair, sums in zip(pairs, live, strict=True) if select(sums.attention, sums.decision))
            last = f"{bytes(rows[-1]['space']).hex()}:{bytes(rows[-1]['entity']).hex()}" if rows else None
            return Slice(tuple(found), len(rows), last if len(rows) == limit else None)

        return await self._read(work)

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """Implement `DreamStore.cluster`."""
        return (await self._read(lambda query: self._clusters(query, [pair], newest)))[0]

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """Implement `DreamStore.about`."""

        def work(query: Query) -> tuple[Cluster, ...]:
            return self._clusters(
                query, reading.named(query, query.all(_ABOUT, (keys.escape(space), limit))), newest
            )

        return await self._read(work)

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """Implement `DreamStore.kinds`."""

        def work(query: Query) -> tuple[Potentials, ...]:
            rows = query.all(_KINDS, (keys.escape(tool.space), *keys.under("intent:"), limit))
            return tuple(reading.potentials(query, reading.named(query, rows), self._now_us()))

        return await self._read(work)

    async def standing(self, after: str | None, limit: int) -> Slice[RuleEvidence]:
        """Implement `DreamStore.standing`."""

        def work(query: Query) -> Slice[RuleEvidence]:
            rules = reading.megrams(query.all(_STANDING, (after or "", limit)))
            live = reading.sums(query, [rule.pair for rule in rules], self._now_us())
            found = (
                RuleEvidence(rule, sums.attention, sums.decision) for rule, sums in zip(rules, live, strict=True)
            )
            return Slice(tuple(found), len(rules), rules[-1].id if len(rules) == limit else None)

        return await self._read(work)

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """Implement `DreamStore.demote`."""

        def work(query: Query) -> bool:
            rule = reading.get(query, [rule_id]).get(rule_id)
            if rule is None or not rule.is_rule or not tables.remove(query, [rule_id]):
                return False
            demoted = rule.model_copy(update={"level": Level.KNOWLEDGE, "k": k, "created_at": at})
            return tables.add(query, [demoted]) == 1

        return await self._write(work)

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """Implement `DreamStore.store`."""

        def work(query: Query) -> None:
            tables.add(query, [megram])
            query.run(tables.MARK, (keys.escape(mark), value))

        await self._write(work)

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """Implement `DreamStore.intents`. If this Dreamer holds the lease, it also deletes pairs without
        evidence."""
        if self._epoch is not None:
            await self._write(lambda query: query.run(_GONE))

        def work(query: Query) -> dict[str, frozenset[str]]:
            rows = query.all(_WORKED, (limit * PAIRS_PER_INTENT,))
            listed = [
                (intent, pair)
                for row in rows
                if (intent := keys.unescape(bytes(row["intent"]))) is not None
                for pair in reading.named(query, [row])
            ]
            pairs = list(dict.fromkeys(pair for _, pair in listed))
            live = dict(zip(pairs, reading.potentials(query, pairs, self._now_us()), strict=True))
            asked = [(pair, Pair(f"intent:{intent}", LOCAL)) for intent, pair in listed]
            told = reading.told_by_kind(query, asked, self._now_us())
            return _tools(
                (intent, tool)
                for (intent, pair), by_kind in zip(listed, told, strict=True)
                # A pair that failed more often than it helped does not count as one that worked.
                if not by_kind and live[pair].action is MemoryAction.EXPLOIT and (tool := tool_of(pair)) is not None
            )

        found = await self._read(work)
        return dict(list(found.items())[:limit])

    async def mark(self, name: str) -> str | None:
        """Implement `DreamStore.mark`."""
        asked = "SELECT value FROM memory_marks WHERE name = ?"
        row = first(await self._read(lambda query: query.all(asked, (keys.escape(name),))))
        return str(row["value"]) if row is not None else None

    async def set_mark(self, name: str, value: str | None) -> None:
        """Implement `DreamStore.set_mark`."""
        key = keys.escape(name)
        if value is None:
            await self._write(lambda query: query.run("DELETE FROM memory_marks WHERE name = ?", (key,)))
        else:
            await self._write(lambda query: query.run(tables.MARK, (key, value)))

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """Implement `DreamStore.propose`."""

        def work(query: Query) -> None:
            query.run(tables.MARK, (keys.escape(mark), proposal.id))
            query.run(_PROPOSE, (proposal.id, proposal.status, proposal.model_dump_json()))

        await self._write(work)

    async def keep_report(self, report: DreamReport) -> None:
        """Implement `DreamStore.keep_report`."""

        def work(query: Query) -> None:
            query.run(_REPORT, (report.dream_id, report.model_dump_json()))
            query.run(_OLD_REPORTS, (REPORTS,))

        await self._write(work)

    def _clusters(self, query: Query, pairs: Sequence[Pair], newest: int) -> tuple[Cluster, ...]:
        live = reading.sums(query, pairs, self._now_us(), direct=True)
        latest = reading.newest(query, pairs, newest)
        return tuple(
            Cluster(pair, sums.attention, sums.decision, tuple(megrams))
            for pair, sums, megrams in zip(pairs, live, latest, strict=True)
        )

    def _now_us(self) -> int:
        return microseconds(self._clock.now())

    async def _read(self, work: Callable[[Query], T]) -> T:
        return await asyncio.to_thread(self._engine.read, work)

    async def _write(self, work: Callable[[Query], T]) -> T:
        epoch = self._epoch
        if epoch is None:
            raise MemoryStoreError("Only whoever holds the turn to dream may change memory as the Dreamer does.")

        def fenced(query: Query) -> T:
            # The lock on the row keeps other Dreamers out until the transaction ends.
            if not query.run(_KEEP, (self._lease_us, epoch)):
                raise MemoryStoreError(
                    "The turn to dream has ended, and another's may have begun; nothing more is changed now."
                )
            return work(query)

        return await asyncio.to_thread(self._engine.write, fenced)


def _tools(worked: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    tools: dict[str, set[str]] = {}
    for intent, tool in worked:
        tools.setdefault(intent, set()).add(tool)
    return {intent: frozenset(found) for intent, found in tools.items()}


def _is_dead(holder: str) -> bool:
    """Return whether the holder of a lease is a process of this machine that has ended."""
    host, _, number = holder.rstrip(")").rpartition(" (")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
