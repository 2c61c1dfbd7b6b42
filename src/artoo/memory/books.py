"""The operations of `artoo memory` on the store, such as overview, explain, rename, oppose and proposals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from heapq import nlargest
from typing import TypeVar

from pydantic import ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, Megram, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import Pair, relabelled
from artoo.control.potentials import retention
from artoo.memory import exchange, keys, reading, tables, verify
from artoo.memory.commands import opposing
from artoo.memory.dreams import PAIRS, Dreams
from artoo.memory.signal import DAY_US, Signal, microseconds, moment, recomputed, signal_of
from artoo.memory.views import Explanation, Findings, Overview, RequestKind, Share
from artoo.ports.clock import Clock
from artoo.store.query import Engine, Query, first

T = TypeVar("T")
_C = TypeVar("_C", bound=Contract)

SHOWN = 50
STRONGEST = 5
EXPLAINED = 5_000
POINTS = 60
REQUESTS = 10_000
REPORTS = 5
LONGEST_CURVE = timedelta(days=90)
_SLICE = 512

_LEVELS = "SELECT level, count(*) AS entries FROM memory_megrams GROUP BY level"
_OPEN = "SELECT proposal FROM memory_proposals WHERE status = 'open' ORDER BY id"
_PROPOSAL = "SELECT proposal FROM memory_proposals WHERE id = ?"
_ANSWER = "UPDATE memory_proposals SET status = ?, proposal = ? WHERE id = ? AND status = 'open'"
_ENTRIES = (
    f"{reading.MEGRAM} m.space = ? AND m.entity = ? AND m.level <> 'C' ORDER BY m.born_us DESC, m.id DESC LIMIT ?"
)
_COUNTED = "SELECT coalesce(sum(entries), 0) AS entries FROM memory_sums WHERE space = ? AND entity = ?"
_OF_PAIR = (
    "SELECT id FROM memory_megrams WHERE space = ? AND entity = ? AND level = 'C' LIMIT ?",
    "SELECT id FROM memory_megrams WHERE space = ? AND entity = ? AND level <> 'C' LIMIT ?",
)
"""One query is for rules and one for all other megrams, because each has an index of its own."""
_OF_KIND = "SELECT id FROM memory_megrams WHERE space IN (?, ?) OR entity IN (?, ?) ORDER BY id LIMIT ?"


class Books:
    """The operations on the store for people. Each raises MemoryStoreError if the store cannot be used."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def overview(self, now: datetime) -> Overview:
        """Return the overview of memory at `now`."""
        return await self._read(lambda query: _overview(query, microseconds(now)))

    async def explain(self, pair: Pair, now: datetime, *, shown: int = SHOWN) -> Explanation:
        """Explain a pair. The explanation has the potentials, the `shown` largest contributions, and both
        potentials over time."""
        now_us = microseconds(now)

        def work(query: Query) -> Explanation:
            entries = reading.megrams(query.all(_ENTRIES, (*reading.key_of(pair), EXPLAINED)))
            known = int(query.all(_COUNTED, reading.key_of(pair))[0]["entries"])
            shares = [_share(each, now_us) for each in entries]
            return Explanation(
                reading.potentials(query, [pair], now_us)[0],
                tuple(nlargest(shown, shares, key=lambda entry: entry.attention)),
                _curve([signal_of(each) for each in entries], now_us),
                max(0, known - len(entries)),
            )

        return await self._read(work)

    async def kinds(self) -> tuple[RequestKind, ...]:
        """Return the known kinds of request."""
        texts: dict[str, list[str]] = {}
        for each in await self._read(lambda query: reading.requests(query, REQUESTS)):
            texts.setdefault(each.label, []).append(each.text)
        return tuple(
            RequestKind(kind, sum(text != kind.replace("_", " ") for text in found), found[0])
            for kind, found in texts.items()
        )

    async def rename_kind(self, old: str, new: str) -> int:
        """Rename a kind of request in all megrams. Return the number of megrams that were changed. This is done in
        slices, each of which is one transaction.

        If the call is interrupted, it can be repeated to continue the work.
        """
        tags = [keys.escape(f"{family}:{old}") for family in ("intent", "request")]

        def work(query: Query) -> int:
            listed = [row["id"] for row in query.all(_OF_KIND, (*tags, *tags, _SLICE))]
            # The megram is removed and added again, because the sums of both pairs change.
            changed = [found for each in reading.get(query, listed).values() if (found := _moved(each, old, new))]
            tables.remove(query, [each.id for each in changed])
            return tables.add(query, changed)

        return await self._until_done(work)

    async def forget_pair(self, pair: Pair) -> int:
        """Delete all megrams of a pair. Return their number."""
        given = (*reading.key_of(pair), _SLICE)

        def work(query: Query) -> int:
            return len(tables.remove(query, [row["id"] for asked in _OF_PAIR for row in query.all(asked, given)]))

        return await self._until_done(work)

    async def forget_one(self, megram_id: str) -> Megram | None:
        """Delete a megram and return it. Return None if it is not stored."""
        return next(iter(await self._write(lambda query: tables.remove(query, [megram_id]))), None)

    async def oppose(self, megram_id: str, why: str, *, new_id: str, at: datetime) -> Megram:
        """Store a megram of the opposite σ against a stored one. Raises MemoryStoreError if the other one is not
        stored."""

        def work(query: Query) -> Megram:
            target = reading.get(query, [megram_id]).get(megram_id)
            if target is None:
                raise MemoryStoreError(
                    f"Memory holds no entry {megram_id}. `artoo memory query` shows the ids of rules."
                )
            against = opposing(target, why, new_id, at)
            tables.add(query, [against])
            return against

        return await self._write(work)

    async def open_proposals(self) -> tuple[TLayerProposal, ...]:
        """Return the proposals of the Dreamer that are not answered yet."""
        return tuple(await self._read(_proposals))

    async def answer_proposal(self, proposal_id: str, *, accept: bool) -> TLayerProposal:
        """Accept or refuse a proposal. Raises MemoryStoreError if it is not stored or was answered already."""

        def work(query: Query) -> TLayerProposal:
            row = first(query.all(_PROPOSAL, (proposal_id,)))
            proposal = next(_readable(TLayerProposal, () if row is None else (row["proposal"],)), None)
            if proposal is None:
                raise MemoryStoreError(f"There is no proposal {proposal_id}. `artoo memory proposals` lists them.")
            answer = proposal.model_copy(update={"status": "accepted" if accept else "refused"})
            if not query.run(_ANSWER, (answer.status, answer.model_dump_json(), proposal_id)):
                raise MemoryStoreError(f"Proposal {proposal_id} is {proposal.status} already.")
            return answer

        return await self._write(work)

    async def examine(self) -> Findings:
        """Check the store. Return the problems that were found."""
        return await self._read(verify.examine)

    async def repair(self) -> None:
        """Repair the problems that `examine` finds."""
        await asyncio.to_thread(verify.repair, self._engine)

    async def exported(self) -> AsyncIterator[bytes]:
        """Yield all megrams as JSON lines, without newlines."""
        after: str | None = ""
        while after is not None:
            lines, after = await self._read(lambda query, start=after: exchange.exported(query, start))
            for line in lines:
                yield line

    async def imported(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Store the megrams in JSON lines. Return the numbers of those that were added and of those that were
        known."""
        return await asyncio.to_thread(exchange.imported, self._engine, lines)

    def dreams(self, clock: Clock) -> Dreams:
        """Return the part of the store that the Dreamer uses."""
        return Dreams(self._engine, clock)

    async def close(self) -> None:
        """Close the store."""
        await asyncio.to_thread(self._engine.close)

    async def _until_done(self, work: Callable[[Query], int]) -> int:
        total = 0
        while done := await self._write(work):
            total += done
        return total

    async def _read(self, work: Callable[[Query], T]) -> T:
        return await asyncio.to_thread(self._engine.read, work)

    async def _write(self, work: Callable[[Query], T]) -> T:
        return await asyncio.to_thread(self._engine.write, work)


def _overview(query: Query, now_us: int) -> Overview:
    """Count levels and pairs. List the strongest pairs, the proposals and the reports. The time is linear in the
    number of entries and pairs."""
    levels = {row["level"]: int(row["entries"]) for row in query.all(_LEVELS)}
    live: list[Potentials] = []
    pairs, after = 0, (b"", b"")
    while rows := query.all(PAIRS, (*after, _SLICE)):
        pairs += len(rows)
        live += reading.potentials(query, reading.named(query, rows), now_us)
        after = bytes(rows[-1]["space"]), bytes(rows[-1]["entity"])
    reports = query.all("SELECT report FROM memory_reports ORDER BY id DESC LIMIT ?", (REPORTS,))
    return Overview(
        levels={level: levels.get(level, 0) for level in "MKC"},
        pairs=pairs,
        bytes_used=query.size("memory_"),
        strongest={action: _strongest(live, action) for action in MemoryAction},
        proposals=tuple(_proposals(query)),
        reports=tuple(_readable(DreamReport, (row["report"] for row in reports))),
    )


def _strongest(live: Sequence[Potentials], action: MemoryAction) -> tuple[Potentials, ...]:
    if action is MemoryAction.IGNORE:
        return ()
    matching = [each for each in live if each.action is action]
    return tuple(nlargest(STRONGEST, matching, key=lambda each: (each.attention, each.decision, each.pair)))


def _proposals(query: Query) -> list[TLayerProposal]:
    return list(_readable(TLayerProposal, (row["proposal"] for row in query.all(_OPEN))))


def _readable(kind: type[_C], rows: Iterable[str]) -> Iterator[_C]:
    """Return the rows that this version of artoo can parse. Rows that other versions wrote are skipped."""
    for row in rows:
        with suppress(ValidationError):
            yield kind.model_validate_json(row)


def _share(megram: Megram, now_us: int) -> Share:
    """Return how much a megram contributes to both sums at `now_us`."""
    signal = signal_of(megram)
    left = signal.f * retention(signal.k, (now_us - signal.born_us) / DAY_US)
    return Share(megram, left, signal.sigma * left)


def _curve(entries: Sequence[Signal], now_us: int) -> tuple[tuple[datetime, float, float], ...]:
    """Return both potentials of the entries over time, as 60 points over at most the last 90 days."""
    if not entries:
        return ()
    oldest = min(signal.born_us for signal in entries)
    start = max(min(oldest, now_us), now_us - LONGEST_CURVE // timedelta(microseconds=1))
    step = max(1, (now_us - start) // (POINTS - 1))
    points = [now_us - step * back for back in reversed(range(POINTS))]
    then = [(at, recomputed((signal for signal in entries if signal.born_us <= at), at)) for at in points]
    return tuple((moment(at), sums.attention, sums.decision) for at, sums in then)


def _moved(megram: Megram, old: str, new: str) -> Megram | None:
    """Return a megram of the kind `old` with the label `new`. Return None if it is of another kind."""
    pair, origin = relabelled(megram.pair, old, new), megram.origin
    if pair == megram.pair:
        return None
    intent = new if origin.intent == old else origin.intent
    changed = {"space": pair.space, "entity": pair.entity, "origin": origin.model_copy(update={"intent": intent})}
    return megram.model_copy(update=changed)
