"""SQL queries of memory, for megrams, sums, rules, newest entries and potentials in one snapshot.

Queries for which a task waits are combined, because `Query.each` runs many queries in one round trip.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from artoo.contracts.memory import KnownRequest, Megram, MemoryAction, Potentials
from artoo.contracts.tags import LOCAL, Pair, is_wide, kind_of, label_of, tool_of
from artoo.control.potentials import Sums, classify
from artoo.memory import codec, keys
from artoo.memory.signal import DAY_US, Signal, recomputed
from artoo.memory.tables import DERIVED, NEUTRAL, SCALE, epoch_length_us, key_of
from artoo.store.query import Query, Row, Values

SCANNED = 10_000

MEGRAM = "SELECT record, at_us FROM memory_megrams AS m LEFT JOIN memory_recalled AS r ON r.id = m.id WHERE"
_NEWEST_FIRST = "ORDER BY m.born_us DESC, m.id DESC LIMIT"
GET = f"{MEGRAM} m.id = ?"
SUMS = """
SELECT k, epoch, kind, latest_us, attention, decision FROM memory_sums WHERE space = ? AND entity = ?
ORDER BY k, epoch, kind
"""
_ENTRIES = """
SELECT born_us, f, sigma, k, derived FROM memory_megrams WHERE space = ? AND entity = ? AND level <> 'C'
"""
_SAID = "m.space = ? AND m.entity = ? AND m.state = 'dissonance' AND m.level <> 'C' AND m.sigma * ? <= 0"
RULES = f"{MEGRAM} m.space = ? AND m.entity = ? AND m.level = 'C' {_NEWEST_FIRST} ?"
NEWEST = f"{MEGRAM} m.space = ? AND m.entity = ? AND m.level <> 'C' AND NOT m.derived {_NEWEST_FIRST} ?"
"""A query for direct evidence. It excludes rules, and entries that memory has derived by itself."""
KNOWN = f"{MEGRAM} m.space = ? AND m.entity = ? AND m.level = 'K' {_NEWEST_FIRST} ?"
DISSONANCE = f"{MEGRAM} {_SAID} {_NEWEST_FIRST} 1"
"""A query for the newest dissonance against a rule of this pair and sign."""
GUESSES = f"""
{MEGRAM} m.hypothesis AND m.level <> 'C' AND m.space = ? AND m.entity >= ? AND m.entity < ?
ORDER BY m.entity DESC, m.id DESC LIMIT ?
"""
_REQUESTS = f"{MEGRAM} m.level <> 'C' AND m.space >= ? AND m.space < ? {_NEWEST_FIRST} ?"
_TAUGHT = f"{MEGRAM} m.task = ? ORDER BY m.id LIMIT ?"
_ANY = f"{MEGRAM} m.space = ? AND m.entity = ? AND m.level <> 'C' LIMIT 1"
_SPACES = """
SELECT DISTINCT space FROM memory_sums WHERE entity = ? AND space >= ? AND space < ? ORDER BY space LIMIT ?
"""
_WORKED = "SELECT space, entity FROM memory_worked WHERE intent = ? ORDER BY space, entity LIMIT ?"


def megrams(rows: Iterable[Row]) -> list[Megram]:
    """Return the megrams in rows with the columns `record` and `at_us`. Raises RecordDamaged."""
    return [codec.with_recall(codec.decode(row["record"]), row["at_us"]) for row in rows]


def get(query: Query, megram_ids: Sequence[str]) -> dict[str, Megram]:
    """Return the megrams that are stored with these ids, by id."""
    (found,) = query.each((GET, [(each,) for each in megram_ids]))
    return {each.id: each for rows in found for each in megrams(rows)}


def about(pairs: Iterable[Pair], *more: int) -> list[Values]:
    """Return the parameters of a query for each pair. They are the key of the pair, followed by `more`."""
    return [(*key_of(pair), *more) for pair in pairs]


def sums(query: Query, pairs: Sequence[Pair], now_us: int, *, direct: bool = False) -> list[Sums]:
    """Return the sums of many pairs. The time for each pair is constant, unless the pair has entries that are newer
    than the clock.

    `direct`: true to leave out entries that memory has derived by itself.
    """
    (cells,) = query.each((SUMS, about(pairs)))
    return added_up(query, pairs, cells, now_us, direct=direct)


def added_up(
    query: Query, pairs: Sequence[Pair], cells: Sequence[Sequence[Row]], now_us: int, *, direct: bool = False
) -> list[Sums]:
    """Compute the sums of each pair from the rows that `SUMS` returns.

    An entry from the future counts as new. The shared factor of the decay cannot express this, so a pair that may
    have such entries is added up entry by entry.
    """
    return [
        _entry_by_entry(query, pair, now_us, direct=direct)
        if any(row["latest_us"] > now_us for row in rows)
        else _of_cells(rows, now_us, direct=direct)
        for pair, rows in zip(pairs, cells, strict=True)
    ]


def _of_cells(rows: Sequence[Row], now_us: int, *, direct: bool) -> Sums:
    attention = decision = judged = 0.0
    for row in rows:
        kind, k = row["kind"], row["k"]
        if direct and kind & DERIVED:
            continue
        # Two half steps are used, because the whole factor could underflow although the product does not.
        half = math.exp(-k * ((now_us - row["epoch"] * epoch_length_us(k)) / DAY_US) / 2)
        try:
            share, side = int(row["attention"]) / SCALE * half * half, int(row["decision"]) / SCALE * half * half
        except ValueError as error:
            raise codec.RecordDamaged(
                "The running sums of a pair cannot be read. Run `artoo memory verify`."
            ) from error
        attention += share
        decision += side
        judged += 0.0 if kind & NEUTRAL else share
    return Sums(attention, decision, judged)


def _entry_by_entry(query: Query, pair: Pair, now_us: int, *, direct: bool) -> Sums:
    entries = (
        Signal(True, row["born_us"], row["f"], row["sigma"], row["k"], bool(row["derived"]))
        for row in query.all(_ENTRIES, key_of(pair))
    )
    return recomputed((each for each in entries if not (direct and each.derived)), now_us)


def potentials(query: Query, pairs: Sequence[Pair], now_us: int) -> list[Potentials]:
    """Return the potentials of many pairs, in the order of the pairs."""
    return [classified(pair, live) for pair, live in zip(pairs, sums(query, pairs, now_us), strict=True)]


def classified(pair: Pair, live: Sums) -> Potentials:
    """Return the potentials of a pair, with its action, which follow from its sums."""
    return Potentials(
        space=pair.space,
        entity=pair.entity,
        attention=live.attention,
        decision=live.decision,
        action=MemoryAction(classify(live)),
    )


def rules(query: Query, pair: Pair, limit: int) -> list[Megram]:
    """Return the entries of level C of a pair, newest first."""
    return megrams(query.all(RULES, (*key_of(pair), limit)))


def newest(query: Query, pairs: Sequence[Pair], limit: int) -> list[list[Megram]]:
    """Return the newest direct evidence of each pair."""
    (found,) = query.each((NEWEST, about(pairs, limit)))
    return [megrams(rows) for rows in found]


def taught(query: Query, task_id: str, limit: int) -> list[Megram]:
    """Return the megrams that a task has written, by id, which is the order in which they were written."""
    return megrams(query.all(_TAUGHT, (keys.escape(task_id), limit)))


def exploits(query: Query, macro: Pair, now_us: int, limit: int) -> list[Potentials]:
    """Return the pairs of tools that worked for the kind of request in `macro`, and whose evidence has the action
    Exploit."""
    intent = keys.escape(macro.space.removeprefix("intent:"))
    pairs = [pair for pair in named(query, query.all(_WORKED, (intent, limit))) if tool_of(pair) is not None]
    live = potentials(query, pairs, now_us)
    told = told_by_kind(query, [(pair, macro) for pair in pairs], now_us)
    return [
        each
        for each, by_kind in zip(live, told, strict=True)
        if each.action is MemoryAction.EXPLOIT and not by_kind
    ]


def told_by_kind(query: Query, asked: Sequence[tuple[Pair, Pair]], now_us: int) -> list[bool]:
    """Return, for each (pair, macro pair), whether the pair is about a tool in general although there is evidence
    about this tool for the kind of request."""
    of_kind = [kind_of(pair, macro) for pair, macro in asked if is_wide(pair)]
    live = iter(potentials(query, of_kind, now_us))
    return [is_wide(pair) and next(live).action is not MemoryAction.IGNORE for pair, _ in asked]


def local_pairs(query: Query, family: str, limit: int) -> list[Pair]:
    """Return the pairs with `env:local` that have evidence and whose space belongs to a family."""
    # Only a pair with evidence has sums, so no megram has to be read.
    found = query.all(_SPACES, (LOCAL.encode(), *keys.under(family), limit))
    return named(query, [{"space": row["space"], "entity": LOCAL.encode()} for row in found])


def requests(query: Query, limit: int) -> tuple[KnownRequest, ...]:
    """Return the newest requests whose kind is known. They are followed by the kinds of which only the label is
    stored."""
    found = megrams(query.all(_REQUESTS, (*keys.under("request:"), limit)))
    known = dict.fromkeys(KnownRequest(text=each.content, label=label_of(each.pair) or "") for each in found)
    kinds = {each.label for each in known}
    labels = (label_of(pair) for pair in local_pairs(query, "intent:", SCANNED))
    rest = [KnownRequest(text=kind.replace("_", " "), label=kind) for kind in labels if kind and kind not in kinds]
    return (*known, *rest[:limit])


def named(query: Query, rows: Iterable[Row]) -> list[Pair]:
    """Return the pairs of rows. If the key of a tag is only a digest, the tag is read from a record."""
    found: list[Pair] = []
    for row in rows:
        key = bytes(row["space"]), bytes(row["entity"])
        space, entity = map(keys.unescape, key)
        if space is not None and entity is not None:
            found.append(Pair(space, entity))
        else:
            found += [each.pair for each in megrams(query.all(_ANY, key))]
    return found


def age(megram: Megram) -> tuple[object, str]:
    """Return the key by which megrams are sorted by the time of their creation."""
    # Ids are sorted by creation, so two megrams with the same time keep their order.
    return megram.created_at, megram.id
