"""What people may see of memory: the pyramid, one pair explained, the Dreamer's reports and proposals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import islice
from typing import TypeVar

from pydantic import ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, KnownRequest, Megram, MemoryAction, Potentials, TLayerProposal
from artoo.contracts.tags import Pair, relabelled
from artoo.control.potentials import Sums, classify, retention
from artoo.memory import keys, reading
from artoo.memory.accumulators import recomputed
from artoo.memory.commands import opposing
from artoo.memory.environment import Environment, Transaction
from artoo.memory.ledger import Ledger
from artoo.memory.signal import DAY_US, Signal, microseconds, moment
from artoo.ports.memory_books import Explanation, Kind, Overview, Share

_C = TypeVar("_C", bound=Contract)

SHOWN = 50
STRONGEST = 5
EXPLAINED = 5_000
POINTS = 60
REQUESTS = 10_000
LONGEST_CURVE = timedelta(days=90)


def overview(environment: Environment, now: datetime) -> Overview:
    """Counts everything once; linear in the number of entries and pairs."""
    now_us = microseconds(now)

    def work(transaction: Transaction) -> Overview:
        live = [
            (part, reading.sums(transaction, part, now_us))
            for part in (key[2:] for key in reading.keys_under(transaction, b"a|"))
        ]
        return Overview(
            levels={
                level: sum(1 for _ in reading.keys_under(transaction, f"l|{level}|".encode())) for level in "MKC"
            },
            pairs=len(live),
            bytes_used=environment.size(),
            strongest={action: _strongest(transaction, live, action) for action in MemoryAction},
            proposals=tuple(_proposals(transaction)),
            reports=tuple(_reports(transaction, 5)),
        )

    return environment.read(work)


def explain(environment: Environment, pair: Pair, now: datetime, *, shown: int = SHOWN) -> Explanation:
    """Takes a pair's potentials apart."""
    now_us = microseconds(now)

    def work(transaction: Transaction) -> Explanation:
        entries = [
            (megram_id, signal)
            for megram_id, signal in reading.signals(transaction, keys.pair_part(pair))
            if signal.counts
        ]
        kept = nlargest(EXPLAINED, entries, key=lambda entry: entry[1].born_us)
        largest = nlargest(shown, kept, key=lambda entry: share(entry[1], now_us)[0])
        shares = [
            Share(megram, *share(signal, now_us))
            for megram_id, signal in largest
            if (megram := reading.get(transaction, megram_id)) is not None
        ]
        live = reading.potentials(transaction, pair, now_us)
        over_time = curve([signal for _, signal in kept], now_us)
        return Explanation(live, tuple(shares), over_time, len(entries) - len(kept))

    return environment.read(work)


def forget_pair(environment: Environment, pair: Pair) -> int:
    """Deletes everything that is known about a pair, rules included. Returns how many entries that were."""
    prefix = b"x|" + keys.pair_part(pair) + b"|"

    def work(transaction: Transaction) -> int:
        listed = [key[len(prefix) :].decode() for key in islice(reading.keys_under(transaction, prefix), 512)]
        ledger = Ledger(transaction)
        for megram_id in listed:
            ledger.remove(megram_id)
        ledger.finish()
        return len(listed)

    total = 0
    while gone := environment.write(work):
        total += gone
    return total


def forget_one(environment: Environment, megram_id: str) -> Megram | None:
    """Deletes one megram; None when there is none with this id."""

    def work(transaction: Transaction) -> Megram | None:
        ledger = Ledger(transaction)
        gone = ledger.remove(megram_id)
        ledger.finish()
        return gone

    return environment.write(work)


def oppose(environment: Environment, megram_id: str, why: str, *, new_id: str, at: datetime) -> Megram:
    """Appends the operator's word against a megram. Raises MemoryStoreError when there is no such megram."""

    def work(transaction: Transaction) -> Megram:
        ledger = Ledger(transaction)
        target = ledger.get(megram_id)
        if target is None:
            raise MemoryStoreError(
                f"Memory holds no entry {megram_id}. `artoo memory query` shows the ids of rules."
            )
        against = opposing(target, why, new_id, at)
        ledger.add(against)
        ledger.finish()
        return against

    return environment.write(work)


def open_proposals(environment: Environment) -> tuple[TLayerProposal, ...]:
    """What the Dreamer proposed for the T layer and nobody has answered."""
    return environment.read(lambda transaction: tuple(_proposals(transaction)))


def answer_proposal(environment: Environment, proposal_id: str, *, accept: bool) -> TLayerProposal:
    """Records the operator's answer. Raises MemoryStoreError when it is unknown or answered already."""

    def work(transaction: Transaction) -> TLayerProposal:
        answer = answered(transaction.get(keys.proposal(proposal_id)), proposal_id, accept=accept)
        transaction.put(keys.proposal(proposal_id), answer.model_dump_json().encode())
        return answer

    return environment.write(work)


def answered(row: str | bytes | None, proposal_id: str, *, accept: bool) -> TLayerProposal:
    """The proposal of a row with the operator's answer. Raises MemoryStoreError when it cannot be answered."""
    proposal = next(readable(TLayerProposal, () if row is None else (row,)), None)
    if proposal is None:
        raise MemoryStoreError(f"There is no proposal {proposal_id}. `artoo memory proposals` lists them.")
    if proposal.status != "open":
        raise MemoryStoreError(f"Proposal {proposal_id} is {proposal.status} already.")
    return proposal.model_copy(update={"status": "accepted" if accept else "refused"})


def _strongest(
    transaction: Transaction, live: list[tuple[bytes, Sums]], action: MemoryAction
) -> tuple[Potentials, ...]:
    if action is MemoryAction.IGNORE:
        return ()
    matching = [(sums.attention, sums.decision, part) for part, sums in live if classify(sums) == action.value]
    found: list[Potentials] = []
    for attention, decision, part in nlargest(STRONGEST, matching):
        pair = reading.pair_of(transaction, part)
        if pair is not None:
            found.append(
                Potentials(
                    space=pair.space, entity=pair.entity, attention=attention, decision=decision, action=action
                )
            )
    return tuple(found)


def _proposals(transaction: Transaction) -> list[TLayerProposal]:
    listed = readable(TLayerProposal, (raw for _, raw in reading.items_under(transaction, b"p|")))
    return [proposal for proposal in listed if proposal.status == "open"]


def _reports(transaction: Transaction, limit: int) -> list[DreamReport]:
    listed = list(reading.items_under(transaction, b"h|"))[-limit:]
    return list(readable(DreamReport, (raw for _, raw in reversed(listed))))


def readable(kind: type[_C], rows: Iterable[str | bytes]) -> Iterator[_C]:
    """The rows that this version of artoo can read; what another one wrote is history, not data."""
    for row in rows:
        with suppress(ValidationError):
            yield kind.model_validate_json(row)


def share(signal: Signal, now_us: int) -> tuple[float, float]:
    """A signal's part in both sums now."""
    left = retention(signal.k, (now_us - signal.born_us) / DAY_US)
    return signal.f * left, signal.sigma * signal.f * left


def curve(entries: list[Signal], now_us: int) -> tuple[tuple[datetime, float, float], ...]:
    """Both potentials of the entries over their last 90 days at most, in 60 points."""
    if not entries:
        return ()
    oldest = min(signal.born_us for signal in entries)
    start = max(min(oldest, now_us), now_us - LONGEST_CURVE // timedelta(microseconds=1))
    step = max(1, (now_us - start) // (POINTS - 1))
    points = [now_us - step * back for back in reversed(range(POINTS))]
    then = [(at, recomputed((signal for signal in entries if signal.born_us <= at), at)) for at in points]
    return tuple((moment(at), sums.attention, sums.decision) for at, sums in then)


def kinds_in(known: Sequence[KnownRequest]) -> tuple[Kind, ...]:
    """The kinds of known requests, in their order."""
    texts: dict[str, list[str]] = {}
    for each in known:
        texts.setdefault(each.label, []).append(each.text)
    return tuple(
        Kind(kind, sum(text != kind.replace("_", " ") for text in found), found[0]) for kind, found in texts.items()
    )


def moved(megram: Megram, old: str, new: str) -> Megram | None:
    """A megram of the kind `old` as one of the kind `new`; None when it is of another."""
    pair, origin = relabelled(megram.pair, old, new), megram.origin
    if pair == megram.pair:
        return None
    intent = new if origin.intent == old else origin.intent
    changed = {"space": pair.space, "entity": pair.entity, "origin": origin.model_copy(update={"intent": intent})}
    return megram.model_copy(update=changed)


def rename_kind(environment: Environment, old: str, new: str) -> int:
    """See the port. One transaction for each slice; repeating it goes on where it stopped."""
    wanted = [f"{family}:{old}".encode() for family in ("intent", "request")]

    def work(transaction: Transaction) -> int:
        listed = (
            keys.split_last(key)[1]
            for key in reading.keys_under(transaction, b"x|")
            if not set(wanted).isdisjoint(key[2:].split(b"|")[:2])
        )
        ledger, count = Ledger(transaction), 0
        for megram_id in list(islice(listed, 512)):
            megram = ledger.get(megram_id)
            changed = None if megram is None else moved(megram, old, new)
            if changed is not None:
                ledger.remove(megram_id)
                count += ledger.add(changed)
        ledger.finish()
        return count

    total = 0
    while gone := environment.write(work):
        total += gone
    return total
