"""The tables of memory, and their running sums of decayed signals by epoch.

The module adds or removes megrams and updates the sums in the same transaction.

On PostgreSQL, `store/migrations` (0010 and 0030) makes the same tables.

exp(−k·(now − t)) = exp(−k·(now − epoch)) · exp(k·(t − epoch)). The first factor is the same for all entries with
the same k, so only the second factor has to be added up. Over years the second factor would overflow. Therefore
time is divided into epochs of 64/k days (3.5 years for k = .05), each with a sum of its own. The epoch of an entry
depends only on its time of creation and on k. The contribution of an entry is an integer multiple of 2^-64, rounded
once. The sums therefore depend only on the set of entries, and not on the order of writes and deletes or on jumps
of the clock. They are the same in both SQL dialects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from artoo.contracts.memory import Megram
from artoo.contracts.tags import Pair
from artoo.memory import codec, keys
from artoo.memory.signal import DAY_US, Signal, microseconds, signal_of
from artoo.store.query import Query, Row, Value
from artoo.store.sqlite import Schema

SCHEMA = Schema(
    "the memory store",
    # The header of the file contains this number, which is "ARME" in ASCII.
    0x41524D45,
    (
        """
CREATE TABLE memory_megrams (
    id TEXT PRIMARY KEY,
    level TEXT NOT NULL,
    space BLOB NOT NULL,
    entity BLOB NOT NULL,
    born_us INTEGER NOT NULL,
    state TEXT NOT NULL,
    derived INTEGER NOT NULL,
    hypothesis INTEGER NOT NULL,
    f REAL NOT NULL,
    sigma REAL NOT NULL,
    k REAL NOT NULL,
    epoch INTEGER NOT NULL,
    attention TEXT NOT NULL,
    decision TEXT NOT NULL,
    task BLOB,
    record TEXT NOT NULL
);
CREATE INDEX memory_evidence ON memory_megrams (space, entity, born_us, id) WHERE level <> 'C';
CREATE INDEX memory_rules ON memory_megrams (space, entity, born_us, id) WHERE level = 'C';
CREATE INDEX memory_knowledge ON memory_megrams (space, entity, born_us, id) WHERE level = 'K';
CREATE INDEX memory_dissonance ON memory_megrams (space, entity, born_us, id) WHERE state = 'dissonance';
CREATE INDEX memory_guesses ON memory_megrams (space, entity, id) WHERE hypothesis;
CREATE INDEX memory_taught ON memory_megrams (task, id) WHERE task IS NOT NULL;
CREATE INDEX memory_standing ON memory_megrams (id) WHERE level = 'C';
CREATE TABLE memory_sums (
    space BLOB NOT NULL,
    entity BLOB NOT NULL,
    k REAL NOT NULL,
    epoch INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    latest_us INTEGER NOT NULL,
    attention TEXT NOT NULL,
    decision TEXT NOT NULL,
    PRIMARY KEY (space, entity, k, epoch, kind)
) WITHOUT ROWID;
CREATE INDEX memory_of_kind ON memory_sums (entity, space);
CREATE TABLE memory_recalled (id TEXT PRIMARY KEY, at_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE memory_worked (
    intent BLOB NOT NULL, space BLOB NOT NULL, entity BLOB NOT NULL, PRIMARY KEY (intent, space, entity)
) WITHOUT ROWID;
CREATE TABLE memory_marks (name BLOB PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE memory_reports (id TEXT PRIMARY KEY, report TEXT NOT NULL);
CREATE TABLE memory_proposals (id TEXT PRIMARY KEY, status TEXT NOT NULL, proposal TEXT NOT NULL);
CREATE TABLE memory_damaged (id TEXT PRIMARY KEY, record TEXT NOT NULL, found_us INTEGER NOT NULL);
CREATE TABLE memory_turns (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch INTEGER NOT NULL, until_us INTEGER NOT NULL
)
""",
    ),
)

SCALE = 1 << 64
EPOCH_EXPONENT = 64
_FOREVER_US = 1 << 62
DERIVED, NEUTRAL = 1, 2
"""Flags of the kind of a cell. Derived entries have sums of their own, because they are no evidence for a
promotion. Entries without a valence have sums of their own, because no advice may be based on them."""

COLUMNS = (
    *("id", "level", "space", "entity", "born_us", "state", "derived", "hypothesis"),
    *("f", "sigma", "k", "epoch", "attention", "decision", "task", "record"),
)
_INSERT = (
    f"INSERT INTO memory_megrams ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (id) DO NOTHING RETURNING id"
)
_DELETE = f"DELETE FROM memory_megrams WHERE id = ? RETURNING {', '.join(COLUMNS)}"
_FORGET_RECALL = "DELETE FROM memory_recalled WHERE id = ? RETURNING at_us"
_RECALLED = """
INSERT INTO memory_recalled (id, at_us) SELECT id, ? FROM memory_megrams WHERE id = ? AND level = 'C'
ON CONFLICT (id) DO UPDATE SET at_us = excluded.at_us WHERE memory_recalled.at_us < excluded.at_us
"""
MARK = (
    "INSERT INTO memory_marks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_WORKED = "INSERT INTO memory_worked (intent, space, entity) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_COUNT = """
INSERT INTO memory_sums (space, entity, k, epoch, kind, entries, latest_us, attention, decision)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, entity, k, epoch, kind) DO UPDATE SET
    entries = memory_sums.entries + excluded.entries,
    latest_us = CASE
        WHEN memory_sums.latest_us > excluded.latest_us THEN memory_sums.latest_us ELSE excluded.latest_us
    END,
    attention = exact_sum(memory_sums.attention, excluded.attention),
    decision = exact_sum(memory_sums.decision, excluded.decision)
"""
_EMPTY = (
    "DELETE FROM memory_sums WHERE space = ? AND entity = ? AND k = ? AND epoch = ? AND kind = ? AND entries = 0"
)

CellKey = tuple[bytes, bytes, float, int, int]
"""(space, entity, k, epoch, kind)"""


@dataclass(slots=True)
class Cell:
    """The sums for one pair, k, epoch and kind, or changes of these sums. No entry in it was created after
    `latest_us`."""

    entries: int = 0
    latest_us: int = -_FOREVER_US
    attention: int = 0
    decision: int = 0


@dataclass(slots=True)
class Cells:
    """The changes of cells while entries are added and removed."""

    found: dict[CellKey, Cell] = field(default_factory=dict[CellKey, Cell])

    def count(self, row: Row, sign: int = 1) -> None:
        """Add a row of `memory_megrams` to the cells. If `sign` is -1, subtract it. Rules are not counted."""
        if row["level"] == "C":
            return
        kind = (DERIVED if row["derived"] else 0) | (0 if row["sigma"] else NEUTRAL)
        key = (bytes(row["space"]), bytes(row["entity"]), float(row["k"]), int(row["epoch"]), kind)
        cell = self.found.setdefault(key, Cell())
        cell.entries += sign
        cell.attention += sign * int(row["attention"])
        cell.decision += sign * int(row["decision"])
        if sign > 0:
            cell.latest_us = max(cell.latest_us, int(row["born_us"]))

    def write(self, query: Query) -> None:
        """Add the changes to the stored sums. This is done in the order of the keys, so that transactions at the
        same time cannot deadlock."""
        listed = sorted(self.found.items())
        changes = [
            (*key, each.entries, each.latest_us, str(each.attention), str(each.decision)) for key, each in listed
        ]
        if changes:
            query.many(_COUNT, changes)
        if gone := [key for key, each in listed if each.entries < 0]:
            query.many(_EMPTY, gone)


def add(query: Query, megrams: Iterable[Megram]) -> int:
    """Store megrams in the order of their ids, which is also the order of `remove`. Returns the number of those
    that were new."""
    first = {each.id: each for each in reversed(list(megrams))}
    rows = [values(first[megram_id]) for megram_id in sorted(first)]
    (stored,) = query.each((_INSERT, [tuple(row.values()) for row in rows]))
    cells, worked, recalled = Cells(), set[tuple[Value, ...]](), list[tuple[Value, ...]]()
    new = [row for row, found in zip(rows, stored, strict=True) if found]
    for row in new:
        cells.count(row)
        megram = first[str(row["id"])]
        if megram.origin.intent and megram.sigma > 0 and not megram.is_rule:
            worked.add((keys.escape(megram.origin.intent), row["space"], row["entity"]))
        if megram.last_recalled_at is not None:
            recalled.append((microseconds(megram.last_recalled_at), megram.id))
    if worked:
        query.many(_WORKED, sorted(worked))  # pyright: ignore[reportArgumentType] - all are bytes
    touch(query, recalled)
    cells.write(query)
    return len(new)


def touch(query: Query, recalled: Sequence[tuple[Value, ...]]) -> None:
    """Set the time of the last recall of rules. They are given as (time, id), sorted by id. A time that is earlier
    than the stored one is ignored, and so is the id of a megram that is no rule."""
    if recalled:
        query.many(_RECALLED, recalled)


def remove(query: Query, megram_ids: Iterable[str]) -> list[Megram]:
    """Delete megrams, and the records that refer to them. Returns the megrams that had been stored."""
    listed = [(each,) for each in sorted(set(megram_ids))]
    deleted, recalled = query.each((_DELETE, listed), (_FORGET_RECALL, listed))
    cells, gone = Cells(), list[Megram]()
    for rows, times in zip(deleted, recalled, strict=True):
        for row in rows:
            cells.count(row, -1)
            gone.append(codec.with_recall(codec.decode(row["record"]), times[0]["at_us"] if times else None))
    cells.write(query)
    return gone


def values(megram: Megram) -> dict[str, Value]:
    """Return the row of a megram, in the order of COLUMNS."""
    signal = signal_of(megram)
    epoch, attention, decision = shares(signal)
    task = megram.origin.task_id
    return {
        "id": megram.id,
        "level": megram.level.value,
        "space": keys.escape(megram.space),
        "entity": keys.escape(megram.entity),
        "born_us": signal.born_us,
        "state": megram.state.value,
        "derived": signal.derived,
        "hypothesis": megram.origin.hypothesis,
        "f": megram.f,
        "sigma": megram.sigma,
        "k": megram.k,
        "epoch": epoch,
        "attention": str(attention),
        "decision": str(decision),
        "task": keys.escape(task) if task else None,
        "record": codec.encode(megram),
    }


def shares(signal: Signal) -> tuple[int, int, int]:
    """Return the epoch of an entry, its contribution to the attention, and its contribution to the decision. All
    are 0 for a rule."""
    if not signal.counts:
        return 0, 0, 0
    epoch, offset = divmod(signal.born_us, epoch_length_us(signal.k))
    numerator, denominator = (signal.f * math.exp(signal.k * (offset / DAY_US))).as_integer_ratio()
    attention = numerator * SCALE // denominator
    if abs(signal.sigma) == 1.0:
        return epoch, attention, attention if signal.sigma > 0 else -attention
    numerator, denominator = signal.sigma.as_integer_ratio()
    return epoch, attention, attention * numerator // denominator


@lru_cache(maxsize=1_024)
def epoch_length_us(k: float) -> int:
    """Return the length of an epoch in microseconds, for a decay of k per day."""
    return max(1, min(_FOREVER_US, int(EPOCH_EXPONENT / k * DAY_US))) if k > 1e-9 else _FOREVER_US


def key_of(pair: Pair) -> tuple[bytes, bytes]:
    """Return a pair as its key."""
    return keys.escape(pair.space), keys.escape(pair.entity)
