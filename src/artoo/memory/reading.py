"""Everything that reads the store, inside one transaction (a consistent snapshot)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import nlargest
from itertools import islice

from artoo.contracts.memory import KnownRequest, Megram, MegramState, MemoryAction, Potentials
from artoo.contracts.tags import LOCAL, Pair, is_wide, kind_of, label_of, tool_of
from artoo.control.potentials import Sums, classify
from artoo.memory import codec, keys
from artoo.memory.accumulators import decode as decode_row
from artoo.memory.accumulators import recomputed
from artoo.memory.environment import Transaction
from artoo.memory.signal import Signal, unpack

SCANNED = 10_000
SCANNED_BACK = 1_000


def keys_under(transaction: Transaction, prefix: bytes, start: bytes | None = None) -> Iterator[bytes]:
    """Keys that begin with `prefix`, in order, from `start` on."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(start if start is not None else prefix):
            return
        for key in cursor.iternext(values=False):
            if not key.startswith(prefix):
                return
            yield key


def items_under(
    transaction: Transaction, prefix: bytes, start: bytes | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values that begin with `prefix`, in order, from `start` on."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(start if start is not None else prefix):
            return
        for key, value in cursor:
            if not key.startswith(prefix):
                return
            yield key, value


def get(transaction: Transaction, megram_id: str) -> Megram | None:
    """The megram with this id, or None."""
    raw = transaction.get(keys.record(megram_id))
    if raw is None:
        return None
    return codec.with_recall(codec.decode(raw), transaction.get(keys.recalled(megram_id)))


def signals(transaction: Transaction, part: bytes) -> Iterator[tuple[str, Signal]]:
    """The entries of a pair, rules included: (id, signal)."""
    prefix = b"x|" + part + b"|"
    for key, value in items_under(transaction, prefix):
        yield key[len(prefix) :].decode(), unpack(value)


def sums(transaction: Transaction, part: bytes, now_us: int, *, direct: bool = False) -> Sums:
    """The sums of a pair. Constant time, unless some entry may lie ahead of the clock.

    A function of the entries of the pair and of nothing else, to the last digit: engines can be compared. `direct`
    leaves out what memory concluded by itself.
    """
    raw = transaction.get(keys.sums(part))
    if raw is None:
        return Sums()
    row = decode_row(raw)
    if not row.ahead_of(now_us):
        return row.at(now_us, direct=direct)
    entries = [signal for _, signal in signals(transaction, part) if signal.counts]
    if all(signal.born_us <= now_us for signal in entries):
        return row.at(now_us, direct=direct)  # the one that lay ahead is gone
    return recomputed((signal for signal in entries if not (direct and signal.derived)), now_us)


def potentials(transaction: Transaction, pair: Pair, now_us: int) -> Potentials:
    """A pair's potentials, classified."""
    live = sums(transaction, keys.pair_part(pair), now_us)
    return Potentials(
        space=pair.space,
        entity=pair.entity,
        attention=live.attention,
        decision=live.decision,
        action=MemoryAction(classify(live)),
    )


def rules(transaction: Transaction, pair: Pair, limit: int) -> list[Megram]:
    """The C-level entries of a pair, newest first."""
    prefix = b"c|" + keys.pair_part(pair) + b"|"
    found = [get(transaction, key[len(prefix) :].decode()) for key in keys_under(transaction, prefix)]
    present = [megram for megram in found if megram is not None]
    return sorted(present, key=lambda megram: (megram.created_at, megram.id), reverse=True)[:limit]


def pair_of(transaction: Transaction, part: bytes) -> Pair | None:
    """The tags behind `space|entity`; looked up in a record when one of them is stored as a digest."""
    space, _, entity = part.partition(b"|")
    tags = keys.unescape(space), keys.unescape(entity)
    if tags[0] is not None and tags[1] is not None:
        return Pair(tags[0], tags[1])
    for megram_id, _ in signals(transaction, part):
        megram = get(transaction, megram_id)
        return megram.pair if megram is not None else None
    return None


def known(transaction: Transaction, pair: Pair, limit: int) -> list[Megram]:
    """The K entries of a pair, newest first. Looks at 10,000 entries of it at most."""
    entries = islice(signals(transaction, keys.pair_part(pair)), SCANNED)
    newest = sorted(((signal.born_us, megram_id) for megram_id, signal in entries if signal.level == "K"))
    found = (get(transaction, megram_id) for _, megram_id in reversed(newest[-limit:]))
    return [megram for megram in found if megram is not None]


def named(transaction: Transaction, prefix: bytes, limit: int) -> list[Megram]:
    """The megrams that the keys under `prefix` name, in key order (by creation)."""
    listed = islice(keys_under(transaction, prefix), limit)
    found = (get(transaction, key[len(prefix) :].decode()) for key in listed)
    return [megram for megram in found if megram is not None]


def exploits(transaction: Transaction, macro: Pair, now_us: int, limit: int) -> list[Potentials]:
    """The pairs of tools that worked for the intent of `macro` and whose evidence says Exploit."""
    found: list[Potentials] = []
    prefix = keys.worked(macro.space.removeprefix("intent:"), b"")
    for key in islice(keys_under(transaction, prefix), limit):
        pair = pair_of(transaction, key[len(prefix) :])
        if pair is None or tool_of(pair) is None or told_by_kind(transaction, pair, macro, now_us):
            continue
        live = potentials(transaction, pair, now_us)
        if live.action is MemoryAction.EXPLOIT:
            found.append(live)
    return found


def told_by_kind(transaction: Transaction, pair: Pair, macro: Pair, now_us: int) -> bool:
    """Whether `pair` is about a tool as such, of which this kind of request has an experience of its own."""
    if not is_wide(pair):
        return False
    return potentials(transaction, kind_of(pair, macro), now_us).action is not MemoryAction.IGNORE


def wide_pairs(transaction: Transaction, limit: int) -> list[Pair]:
    """The pairs of tools whatever their target; one seek a tool, however many targets it has."""
    found: list[Pair] = []
    start = b"a|tool:"
    while len(found) < limit:
        key = next(keys_under(transaction, b"a|tool:", start), None)
        if key is None:
            break
        space = key[2:].partition(b"|")[0]
        wide = space + b"|" + LOCAL.encode()
        if transaction.get(keys.sums(wide)) is not None and (pair := pair_of(transaction, wide)) is not None:
            found.append(pair)
        start = b"a|" + space + b"}"  # the next byte after `|`: the first key of the next tool
    return found


def newest(transaction: Transaction, part: bytes, limit: int) -> list[Megram]:
    """The newest direct evidence of a pair: no rules, and nothing that memory concluded by itself.

    Looks at the last 1,000 entries by id; ids sort by creation.
    """
    direct = (
        (signal.born_us, megram_id)
        for megram_id, signal in islice(_signals_backwards(transaction, part), SCANNED_BACK)
        if signal.counts and not signal.derived
    )
    found = (get(transaction, megram_id) for _, megram_id in nlargest(limit, direct))
    return [megram for megram in found if megram is not None]


def spoken_against(transaction: Transaction, rule: Megram) -> bool:
    """True when dissonance against `rule` is as new as the newest direct evidence of its pair.

    The same evidence contradicts a rule in every task that looks; it is written down by the first.
    """
    part = keys.pair_part(rule.pair)
    told = (
        (signal.born_us, megram_id)
        for megram_id, signal in islice(_signals_backwards(transaction, part), SCANNED_BACK)
        if signal.derived and signal.counts and signal.sigma * rule.sigma <= 0
    )
    said = next(
        (
            megram
            for _, megram_id in sorted(told, reverse=True)
            if (megram := get(transaction, megram_id)) is not None and megram.state is MegramState.DISSONANCE
        ),
        None,
    )
    evidence = newest(transaction, part, 1)
    return said is not None and (not evidence or age(said) > age(evidence[0]))


def age(megram: Megram) -> tuple[datetime, str]:
    """What orders megrams by when they were made."""
    return megram.created_at, megram.id  # ids sort by creation: two of one instant keep their order


def _signals_backwards(transaction: Transaction, part: bytes) -> Iterator[tuple[str, Signal]]:
    prefix = b"x|" + part + b"|"
    with transaction.cursor() as cursor:
        found = cursor.prev() if cursor.set_range(prefix + b"\xff") else cursor.last()
        while found and cursor.key().startswith(prefix):
            yield cursor.key()[len(prefix) :].decode(), unpack(cursor.value())
            found = cursor.prev()


def hypotheses(transaction: Transaction, intent_pair: Pair, limit: int) -> list[Megram]:
    """What the Dreamer guesses for a kind of request."""
    prefix = b"x|" + keys.escape(intent_pair.space) + b"|tool:"
    listed = islice(items_under(transaction, prefix), SCANNED)
    guesses = [keys.split_last(key)[1] for key, value in listed if unpack(value).derived]
    found = (get(transaction, megram_id) for megram_id in guesses[-limit:])
    return [megram for megram in found if megram is not None and megram.origin.hypothesis]


def requests(transaction: Transaction, limit: int) -> tuple[KnownRequest, ...]:
    """The newest requests whose kind is known, and after them the kinds of which only the label is left."""
    listed = islice(items_under(transaction, b"x|request:"), SCANNED)
    latest = nlargest(limit, ((unpack(value).born_us, keys.split_last(key)[1]) for key, value in listed))
    found = [megram for _, megram_id in latest if (megram := get(transaction, megram_id)) is not None]
    pairs = (pair_of(transaction, key[2:]) for key in islice(keys_under(transaction, b"a|intent:"), SCANNED))
    return known_requests(found, pairs, limit)


def known_requests(found: Iterable[Megram], pairs: Iterable[Pair | None], limit: int) -> tuple[KnownRequest, ...]:
    """Each request once, newest first; then each kind without one, which its label describes."""
    known = dict.fromkeys(KnownRequest(text=each.content, label=label_of(each.pair) or "") for each in found)
    kinds = {each.label for each in known}
    labels = (label_of(pair) for pair in pairs if pair is not None and pair.entity == LOCAL)
    rest = [KnownRequest(text=kind.replace("_", " "), label=kind) for kind in labels if kind and kind not in kinds]
    return (*known, *rest[:limit])
