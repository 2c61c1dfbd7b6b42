"""The Dreamer's side of the store (`ports.dream`): small slices, atomic changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

from artoo.contracts.memory import DreamReport, Level, Megram, Potentials, TLayerProposal
from artoo.contracts.tags import LOCAL, Pair, tool_of
from artoo.control.potentials import classify
from artoo.memory import keys, reading
from artoo.memory.environment import Environment, Transaction
from artoo.memory.ledger import Ledger
from artoo.memory.signal import DAY_US, Signal, microseconds, signal_of, unpack
from artoo.memory.turn import held
from artoo.ports.clock import Clock
from artoo.ports.dream import Cluster, Fading, Slice, Standing

REPORTS = 100
PAIRS_PER_INTENT = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Implements `ports.dream.DreamStore` over an open environment."""

    environment: Environment
    clock: Clock

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """See the port."""
        with held(self.environment.directory):
            yield

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """See the port."""

        def work(transaction: Transaction) -> Slice[Fading]:
            now_us = microseconds(self.clock.now())
            found: list[Fading] = []
            examined, last = 0, None
            for key, value in islice(reading.items_under(transaction, b"x|", _start(after)), limit):
                examined, last = examined + 1, key
                signal = unpack(value)
                entry = _fading(keys.split_last(key)[1], signal, now_us)
                if signal.counts and select(entry):
                    found.append(entry)
            return Slice(tuple(found), examined, _next(last, examined, limit))

        return await self._read(work)

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """See the port."""

        def work(ledger: Ledger) -> tuple[Megram, ...]:
            now_us = microseconds(self.clock.now())
            gone: list[Megram] = []
            for megram_id in megram_ids:
                megram = ledger.get(megram_id)
                if megram is None or megram.is_rule:
                    continue
                if select(_fading(megram_id, signal_of(megram), now_us)):
                    ledger.remove(megram_id)
                    gone.append(megram)
            return tuple(gone)

        return await self._write(work)

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """See the port."""

        def work(transaction: Transaction) -> Slice[Pair]:
            now_us = microseconds(self.clock.now())
            found: list[Pair] = []
            examined, last = 0, None
            for key in islice(reading.keys_under(transaction, b"a|", _start(after)), limit):
                examined, last = examined + 1, key
                live = reading.sums(transaction, key[2:], now_us, direct=True)
                if select(live.attention, live.decision):
                    pair = reading.pair_of(transaction, key[2:])
                    if pair is not None:
                        found.append(pair)
            return Slice(tuple(found), examined, _next(last, examined, limit))

        return await self._read(work)

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """See the port."""

        def work(transaction: Transaction) -> Cluster:
            return _cluster(transaction, pair, newest, microseconds(self.clock.now()))

        return await self._read(work)

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """See the port."""

        def work(transaction: Transaction) -> tuple[Cluster, ...]:
            now_us = microseconds(self.clock.now())
            parts = islice(reading.keys_under(transaction, b"a|" + keys.escape(space) + b"|"), limit)
            pairs = [reading.pair_of(transaction, key[2:]) for key in parts]
            return tuple(_cluster(transaction, pair, newest, now_us) for pair in pairs if pair is not None)

        return await self._read(work)

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """See the port."""

        def work(transaction: Transaction) -> tuple[Potentials, ...]:
            now_us = microseconds(self.clock.now())
            prefix = b"a|" + keys.escape(tool.space) + b"|intent:"
            pairs = (
                reading.pair_of(transaction, key[2:])
                for key in islice(reading.keys_under(transaction, prefix), limit)
            )
            return tuple(reading.potentials(transaction, pair, now_us) for pair in pairs if pair is not None)

        return await self._read(work)

    async def standing(self, after: str | None, limit: int) -> Slice[Standing]:
        """See the port."""

        def work(transaction: Transaction) -> Slice[Standing]:
            now_us = microseconds(self.clock.now())
            found: list[Standing] = []
            examined, last = 0, None
            for key in islice(reading.keys_under(transaction, b"l|C|", _start(after)), limit):
                examined, last = examined + 1, key
                rule = reading.get(transaction, key[4:].decode())
                if rule is not None:
                    live = reading.sums(transaction, keys.pair_part(rule.pair), now_us)
                    found.append(Standing(rule, live.attention, live.decision))
            return Slice(tuple(found), examined, _next(last, examined, limit))

        return await self._read(work)

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """See the port."""

        def work(ledger: Ledger) -> bool:
            rule = ledger.get(rule_id)
            if rule is None or not rule.is_rule:
                return False
            return ledger.replace(rule.model_copy(update={"level": Level.KNOWLEDGE, "k": k, "created_at": at}))

        return await self._write(work)

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """See the port."""

        def work(transaction: Transaction) -> None:
            ledger = Ledger(transaction)
            ledger.add(megram)
            ledger.finish()
            transaction.put(keys.mark(mark), value.encode())

        await asyncio.to_thread(self.environment.write, work)

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """See the port. Pairs whose evidence is gone are taken off the list."""
        now_us = microseconds(self.clock.now())
        found: dict[str, set[str]] = {}
        gone: list[bytes] = []

        def work(transaction: Transaction) -> None:
            found.clear()
            gone.clear()
            for key in islice(reading.keys_under(transaction, b"i|"), limit * PAIRS_PER_INTENT):
                intent_part, _, part = key[2:].partition(b"|")
                if transaction.get(keys.sums(part)) is None:
                    gone.append(key)
                    continue
                intent, pair = keys.unescape(intent_part), reading.pair_of(transaction, part)
                tool = tool_of(pair) if pair is not None else None
                if intent is None or pair is None or tool is None:
                    continue
                if reading.told_by_kind(transaction, pair, Pair(f"intent:{intent}", LOCAL), now_us):
                    continue
                # A pair that failed more often than it helped has not worked for anybody.
                if classify(reading.sums(transaction, part, now_us)) != "exploit":
                    continue
                if intent not in found and len(found) == limit:
                    break
                found.setdefault(intent, set()).add(tool)

        await self._read(work)
        if gone:
            await asyncio.to_thread(self.environment.write, lambda transaction: _drop_worked(transaction, gone))
        return {intent: frozenset(tools) for intent, tools in found.items()}

    async def mark(self, name: str) -> str | None:
        """See the port."""
        raw = await self._read(lambda transaction: transaction.get(keys.mark(name)))
        return raw.decode() if raw is not None else None

    async def set_mark(self, name: str, value: str | None) -> None:
        """See the port."""

        def work(transaction: Transaction) -> None:
            if value is None:
                transaction.delete(keys.mark(name))
            else:
                transaction.put(keys.mark(name), value.encode())

        await asyncio.to_thread(self.environment.write, work)

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """See the port."""

        def work(transaction: Transaction) -> None:
            transaction.put(keys.proposal(proposal.id), proposal.model_dump_json().encode())
            transaction.put(keys.mark(mark), proposal.id.encode())

        await asyncio.to_thread(self.environment.write, work)

    async def keep_report(self, report: DreamReport) -> None:
        """See the port."""

        def work(transaction: Transaction) -> None:
            transaction.put(keys.report(report.dream_id), report.model_dump_json().encode())
            kept = list(reading.keys_under(transaction, b"h|"))
            for key in kept[:-REPORTS]:
                transaction.delete(key)

        await asyncio.to_thread(self.environment.write, work)
        await asyncio.to_thread(self.environment.forget_dead_readers)

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.to_thread(self.environment.read, work)

    async def _write(self, work: Callable[[Ledger], T]) -> T:
        def in_transaction(transaction: Transaction) -> T:
            ledger = Ledger(transaction)
            result = work(ledger)
            ledger.finish()
            return result

        return await asyncio.to_thread(self.environment.write, in_transaction)


def _drop_worked(transaction: Transaction, listed: Sequence[bytes]) -> None:
    for key in listed:
        part = key[2:].partition(b"|")[2]
        if transaction.get(keys.sums(part)) is None:
            transaction.delete(key)


def _cluster(transaction: Transaction, pair: Pair, newest: int, now_us: int) -> Cluster:
    part = keys.pair_part(pair)
    live = reading.sums(transaction, part, now_us, direct=True)
    return Cluster(pair, live.attention, live.decision, tuple(reading.newest(transaction, part, newest)))


def _fading(megram_id: str, signal: Signal, now_us: int) -> Fading:
    return Fading(megram_id, signal.f, signal.k, (now_us - signal.born_us) / DAY_US)


def _start(after: str | None) -> bytes | None:
    # The successor of a key is the key with a zero byte behind it.
    return bytes.fromhex(after) + b"\0" if after is not None else None


def _next(last: bytes | None, examined: int, limit: int) -> str | None:
    return last.hex() if last is not None and examined == limit else None
