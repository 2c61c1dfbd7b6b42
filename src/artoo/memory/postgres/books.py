"""Memory's books on PostgreSQL (`ports.memory_books`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from functools import partial
from heapq import nlargest
from typing import TYPE_CHECKING, TypeVar

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, Megram, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import Pair
from artoo.control.potentials import Sums, classify
from artoo.memory import codec, exchange, keys
from artoo.memory.commands import opposing
from artoo.memory.insight import (
    EXPLAINED,
    SHOWN,
    STRONGEST,
    answered,
    curve,
    kinds_in,
    moved,
    readable,
    share,
)
from artoo.memory.insight import (
    REQUESTS as KNOWN_REQUESTS,
)
from artoo.memory.postgres import changing, examining, reading, rows
from artoo.memory.postgres.database import Database, Row
from artoo.memory.postgres.dreams import PostgresDreams
from artoo.memory.postgres.sink import append, get_many
from artoo.memory.signal import microseconds, signal_of
from artoo.ports.clock import Clock
from artoo.ports.memory_books import Explanation, Findings, Kind, Overview, Share

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

T = TypeVar("T")

REPORTS = 5
_SLICE = 512
_PAIRS = b"SELECT DISTINCT space, entity FROM memory_sums WHERE (space, entity) > (%s, %s) ORDER BY 1, 2 LIMIT %s"
_LEVELS = b"SELECT level, count(*) AS entries FROM memory_megrams GROUP BY level"
_BYTES = b"""
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
FROM pg_class AS c WHERE c.relnamespace = 'artoo'::regnamespace AND c.relkind = 'r' AND c.relname LIKE 'memory\\_%%'
"""
_ENTRIES = b"""
SELECT record, recalled_us, count(*) OVER () AS entries FROM memory_megrams
WHERE space = %s AND entity = %s AND level <> 'C' ORDER BY born_us DESC, id DESC LIMIT %s
"""
_OF_KIND = b"SELECT id FROM memory_megrams WHERE space = ANY(%s) OR entity = ANY(%s) ORDER BY id LIMIT %s"
_EXPORTED = b"SELECT id, record, recalled_us FROM memory_megrams WHERE id > %s ORDER BY id LIMIT %s"


class PostgresBooks:
    """Implements `ports.memory_books.MemoryBooks`. `close` ends the connections of its database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, now: datetime) -> Overview:
        """See the port."""
        return await asyncio.to_thread(self._database.snapshot, lambda connection: _overview(connection, now))

    async def explain(self, pair: Pair, now: datetime, *, shown: int = SHOWN) -> Explanation:
        """See the port."""
        now_us = microseconds(now)

        def work(connection: Connection) -> Explanation:
            (space,), (entity,) = rows.pair_keys([pair])
            found = connection.execute(_ENTRIES, (space, entity, EXPLAINED)).fetchall()
            entries = [rows.megram(row) for row in found]
            shares = [Share(each, *share(signal_of(each), now_us)) for each in entries]
            (live,) = reading.sums(connection, [pair], now_us)
            return Explanation(
                reading.potentials(pair, live),
                tuple(nlargest(shown, shares, key=lambda entry: entry.attention)),
                curve([signal_of(each) for each in entries], now_us),
                (int(found[0]["entries"]) - len(found)) if found else 0,
            )

        return await asyncio.to_thread(self._database.snapshot, work)

    async def kinds(self) -> tuple[Kind, ...]:
        """See the port."""
        return kinds_in(
            await asyncio.to_thread(self._database.read, lambda found: reading.requests(found, KNOWN_REQUESTS))
        )

    async def rename_kind(self, old: str, new: str) -> int:
        """See the port."""
        tags = [keys.escape(f"{family}:{old}") for family in ("intent", "request")]

        def work(connection: Connection) -> int:
            listed = [str(row["id"]) for row in connection.execute(_OF_KIND, (tags, tags, _SLICE))]
            old_ones = changing.locked(connection, listed)
            changed = [megram for each in old_ones if (megram := moved(each, old, new)) is not None]
            changing.remove(connection, [each.id for each in changed])
            return append(connection, changed)

        total = 0
        while gone := await self._write(work):
            total += gone
        return total

    async def forget_pair(self, pair: Pair) -> int:
        """See the port."""
        total = 0
        while gone := await self._write(
            lambda connection: len(changing.remove(connection, changing.ids_of(connection, pair, _SLICE)))
        ):
            total += gone
        return total

    async def forget_one(self, megram_id: str) -> Megram | None:
        """See the port."""
        return next(iter(await self._write(lambda connection: changing.remove(connection, [megram_id]))), None)

    async def oppose(self, megram_id: str, why: str, *, new_id: str, at: datetime) -> Megram:
        """See the port."""

        def work(connection: Connection) -> Megram:
            target = next(iter(get_many(connection, [megram_id])), None)
            if target is None:
                raise MemoryStoreError(
                    f"Memory holds no entry {megram_id}. `artoo memory query` shows the ids of rules."
                )
            against = opposing(target, why, new_id, at)
            append(connection, [against])
            return against

        return await self._write(work)

    async def open_proposals(self) -> tuple[TLayerProposal, ...]:
        """See the port."""
        return tuple(await asyncio.to_thread(self._database.read, _proposals))

    async def answer_proposal(self, proposal_id: str, *, accept: bool) -> TLayerProposal:
        """See the port."""

        def work(connection: Connection) -> TLayerProposal:
            row = connection.execute(
                b"SELECT proposal FROM memory_proposals WHERE id = %s FOR UPDATE", (proposal_id,)
            ).fetchone()
            answer = answered(None if row is None else row["proposal"], proposal_id, accept=accept)
            connection.execute(
                b"UPDATE memory_proposals SET status = %s, proposal = %s WHERE id = %s",
                (answer.status, answer.model_dump_json(), proposal_id),
            )
            return answer

        return await self._write(work)

    async def examine(self) -> Findings:
        """See the port."""
        return await asyncio.to_thread(self._database.snapshot, examining.examine)

    async def repair(self) -> None:
        """See the port."""
        await self._write(examining.repair)

    async def exported(self) -> AsyncIterator[bytes]:
        """See the port."""
        after = ""
        while True:
            found = await asyncio.to_thread(self._database.read, partial(_exported, after=after))
            for row in found:
                yield codec.encode_whole(rows.megram(row))
            if len(found) < exchange.SLICE:
                return
            after = str(found[-1]["id"])

    async def imported(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """See the port."""
        return await asyncio.to_thread(exchange.stored, lines, self._add)

    def dreams(self, clock: Clock) -> PostgresDreams:
        """See the port."""
        return PostgresDreams(self._database, clock)

    async def close(self) -> None:
        """See the port."""
        await asyncio.to_thread(self._database.close)

    def _add(self, megrams: list[Megram]) -> int:
        return self._database.write(lambda connection: append(connection, megrams))

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self._database.write, work)


def _exported(connection: Connection, after: str) -> list[Row]:
    return connection.execute(_EXPORTED, (after, exchange.SLICE)).fetchall()


def _overview(connection: Connection, now: datetime) -> Overview:
    now_us = microseconds(now)
    levels = {str(row["level"]): int(row["entries"]) for row in connection.execute(_LEVELS)}
    live = _live(connection, now_us)
    (size,) = (int(row["bytes"]) for row in connection.execute(_BYTES))
    reports = connection.execute(b"SELECT report FROM memory_reports ORDER BY id DESC LIMIT %s", (REPORTS,))
    return Overview(
        levels={level: levels.get(level, 0) for level in "MKC"},
        pairs=len(live),
        bytes_used=size,
        strongest={action: _strongest(live, action) for action in MemoryAction},
        proposals=tuple(_proposals(connection)),
        reports=tuple(readable(DreamReport, (row["report"] for row in reports))),
    )


def _live(connection: Connection, now_us: int) -> list[tuple[Pair, Sums]]:
    """Every pair with its sums, in slices."""
    live: list[tuple[Pair, Sums]] = []
    after = (b"", b"")
    while found := connection.execute(_PAIRS, (*after, _SLICE)).fetchall():
        parts = [(bytes(row["space"]), bytes(row["entity"])) for row in found]
        pairs = reading.named(connection, parts)
        live += zip(pairs, reading.sums(connection, pairs, now_us), strict=True)
        after = parts[-1]
    return live


def _strongest(live: list[tuple[Pair, Sums]], action: MemoryAction) -> tuple[Potentials, ...]:
    if action is MemoryAction.IGNORE:
        return ()
    matching = [(sums.attention, sums.decision, pair) for pair, sums in live if classify(sums) == action.value]
    return tuple(
        Potentials(space=pair.space, entity=pair.entity, attention=attention, decision=decision, action=action)
        for attention, decision, pair in nlargest(STRONGEST, matching)
    )


def _proposals(connection: Connection) -> list[TLayerProposal]:
    found = connection.execute(b"SELECT proposal FROM memory_proposals WHERE status = 'open' ORDER BY id")
    return list(readable(TLayerProposal, (row["proposal"] for row in found)))
