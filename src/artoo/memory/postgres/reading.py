"""Everything that reads the store: one statement each, so that one trip over the network answers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from artoo.contracts.memory import KnownRequest, Megram, MemoryAction, Potentials
from artoo.contracts.tags import LOCAL, Pair, is_wide, kind_of, tool_of
from artoo.control.potentials import Sums, classify
from artoo.memory import keys
from artoo.memory.accumulators import recomputed
from artoo.memory.postgres import rows
from artoo.memory.postgres.database import Row
from artoo.memory.reading import SCANNED, known_requests
from artoo.memory.signal import Signal

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    from artoo.memory.postgres.database import Connection

    Cursor = psycopg.Cursor[DictRow]

_SUMS = b"""
WITH given AS MATERIALIZED ({given}), asked AS MATERIALIZED (
    SELECT place, space, entity, EXISTS (
        SELECT FROM memory_megrams AS entry
        WHERE entry.space = given.space AND entry.entity = given.entity AND entry.level <> 'C'
            AND entry.born_us > %s
    ) AS ahead
    FROM given
)
SELECT place, space, entity, ahead, k, epoch, kind, entries, attention, decision,
    NULL::bigint AS born_us, NULL::float8 AS f, NULL::float8 AS sigma, NULL::boolean AS derived
FROM asked JOIN memory_sums USING (space, entity) WHERE NOT ahead
UNION ALL
SELECT place, space, entity, ahead, k, NULL, NULL, NULL, NULL, NULL, born_us, f, sigma, derived
FROM asked JOIN memory_megrams USING (space, entity) WHERE ahead AND level <> 'C'
ORDER BY place
"""
"""The running sums of many pairs; entry by entry for a pair of which one lies ahead of the clock."""
_ASKED = _SUMS.replace(
    b"{given}",
    b"SELECT space, entity, place"
    b" FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS listed (space, entity, place)",
)
_WORKED = _SUMS.replace(
    b"{given}",
    b"SELECT space, entity, row_number() OVER (ORDER BY space, entity) AS place"
    b" FROM memory_worked WHERE intent = %s ORDER BY space, entity LIMIT %s",
)

_REQUESTS = b"""
SELECT record, recalled_us FROM memory_megrams
WHERE space >= 'request:'::bytea AND space < 'request;'::bytea AND level <> 'C'
ORDER BY born_us DESC, id DESC LIMIT %s
"""
_INTENTS = b"""
SELECT DISTINCT space FROM memory_sums
WHERE space >= 'intent:'::bytea AND space < 'intent;'::bytea AND entity = 'env:local'::bytea ORDER BY space LIMIT %s
"""

_RULES = b"""
SELECT place, record, recalled_us
FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS asked (space, entity, place), LATERAL (
    SELECT record, recalled_us, born_us, id FROM memory_megrams AS rule
    WHERE rule.space = asked.space AND rule.entity = asked.entity AND rule.level = 'C'
    ORDER BY born_us DESC, id DESC LIMIT %s
) AS found
ORDER BY place, born_us DESC, id DESC
"""

_NEWEST = b"""
SELECT place, record, recalled_us
FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS asked (space, entity, place), LATERAL (
    SELECT record, recalled_us, born_us, id FROM memory_megrams AS entry
    WHERE entry.space = asked.space AND entry.entity = asked.entity AND entry.level <> 'C' AND NOT entry.derived
    ORDER BY born_us DESC, id DESC LIMIT %s
) AS found
ORDER BY place, born_us DESC, id DESC
"""
"""The newest direct evidence: no rules, and nothing that memory concluded by itself."""

_KNOWN = b"""
SELECT place, record, recalled_us
FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS asked (space, entity, place), LATERAL (
    SELECT record, recalled_us, born_us, id FROM memory_megrams AS entry
    WHERE entry.space = asked.space AND entry.entity = asked.entity AND entry.level = 'K'
    ORDER BY born_us DESC, id DESC LIMIT %s
) AS found
ORDER BY place, born_us DESC, id DESC
"""

_DISSONANCE = b"""
SELECT place, record, recalled_us
FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS asked (space, entity, place),
    unnest(ARRAY[-1, 1]) AS side, LATERAL (
    SELECT record, recalled_us FROM memory_megrams AS said
    WHERE said.space = asked.space AND said.entity = asked.entity AND said.state = 'dissonance'
        AND said.level <> 'C' AND said.sigma * side >= 0
    ORDER BY born_us DESC, id DESC LIMIT 1
) AS found
ORDER BY place
"""
"""The newest that was said against practices, and against constraints."""

_GUESSES = b"""
SELECT record, recalled_us FROM (
    SELECT record, recalled_us, entity, id FROM memory_megrams
    WHERE hypothesis AND space = %s AND entity >= 'tool:'::bytea AND entity < 'tool;'::bytea AND level <> 'C'
    ORDER BY entity DESC, id DESC LIMIT %s
) AS latest ORDER BY entity, id
"""

_WIDE = f"""
SELECT DISTINCT space FROM memory_sums
WHERE entity = '{LOCAL}'::bytea AND space >= 'tool:'::bytea AND space < 'tool;'::bytea ORDER BY space LIMIT %s
""".encode()

_TAUGHT = b"SELECT record, recalled_us FROM memory_megrams WHERE task = %s ORDER BY id LIMIT %s"

_ANY = b"""
SELECT record FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS asked (space, entity, place), LATERAL (
    SELECT record FROM memory_megrams AS entry
    WHERE entry.space = asked.space AND entry.entity = asked.entity AND entry.level <> 'C' LIMIT 1
) AS found ORDER BY place
"""

Placed = Mapping[int, Sequence[Megram]]
"""Megrams by the place of their pair in what was asked for, newest first."""


def sums(connection: Connection, pairs: Sequence[Pair], now_us: int, *, direct: bool = False) -> list[Sums]:
    """The sums of many pairs in one snapshot, in their order. `direct`: see the embedded `reading.sums`."""
    return added_up(ask_sums(connection, pairs, now_us), len(pairs), now_us, direct=direct)


def worked(connection: Connection, macro: Pair, now_us: int, limit: int) -> list[Potentials]:
    """Up to `limit` pairs of tools that worked for the intent of `macro`."""
    intent = keys.escape(macro.space.removeprefix("intent:"))
    found = list(iter_rows(connection, _WORKED, (intent, limit, now_us)))
    places = {int(row["place"]): (bytes(row["space"]), bytes(row["entity"])) for row in found}
    live = added_up(iter(found), max(places, default=0), now_us)
    pairs = {pair: live[place - 1] for place, part in places.items() for pair in named(connection, [part])}
    told = told_by_kind(connection, [(pair, macro) for pair in pairs], now_us)
    return [
        potentials(pair, sums)
        for (pair, sums), by_kind in zip(pairs.items(), told, strict=True)
        if not by_kind and tool_of(pair) is not None
    ]


def told_by_kind(connection: Connection, worked: Sequence[tuple[Pair, Pair]], now_us: int) -> list[bool]:
    """For each (pair, macro pair): see the embedded `told_by_kind`."""
    wide = [at for at, (pair, _) in enumerate(worked) if is_wide(pair)]
    live = sums(connection, [kind_of(*worked[at]) for at in wide], now_us) if wide else []
    told = {at for at, each in zip(wide, live, strict=True) if classify(each) != "ignore"}
    return [at in told for at in range(len(worked))]


def ask_sums(connection: Connection, pairs: Sequence[Pair], now_us: int) -> Iterator[Row]:
    """Sends the question of `sums`; what comes back is for `added_up`."""
    return iter_rows(connection, _ASKED, (*rows.pair_keys(pairs), now_us))


def added_up(found: Iterator[Row], count: int, now_us: int, *, direct: bool = False) -> list[Sums]:
    """The sums that the rows of `ask_sums` make."""
    live = [Sums()] * count
    for place, group in groupby(found, key=lambda row: int(row["place"])):
        listed = list(group)
        if listed[0]["ahead"]:
            entries = [_signal(row) for row in listed]
            live[place - 1] = recomputed((each for each in entries if not (direct and each.derived)), now_us)
        else:
            live[place - 1] = rows.sums(listed).at(now_us, direct=direct)
    return live


def iter_rows(connection: Connection, query: bytes, values: Sequence[object]) -> Iterator[Row]:
    """The rows of a statement, fetched when they are first asked for: in a pipeline that is after all were sent."""
    return _fetched(connection.execute(query, values))


def potentials(pair: Pair, live: Sums) -> Potentials:
    """A pair's potentials, classified."""
    return Potentials(
        space=pair.space,
        entity=pair.entity,
        attention=live.attention,
        decision=live.decision,
        action=MemoryAction(classify(live)),
    )


def ask_rules(connection: Connection, pairs: Sequence[Pair], limit: int) -> Iterator[Row]:
    """The C-level entries of each pair, newest first."""
    return iter_rows(connection, _RULES, (*rows.pair_keys(pairs), limit))


def ask_newest(connection: Connection, pairs: Sequence[Pair], limit: int) -> Iterator[Row]:
    """The newest direct evidence of each pair."""
    return iter_rows(connection, _NEWEST, (*rows.pair_keys(pairs), limit))


def ask_known(connection: Connection, pairs: Sequence[Pair], limit: int) -> Iterator[Row]:
    """The K entries of each pair, newest first."""
    return iter_rows(connection, _KNOWN, (*rows.pair_keys(pairs), limit))


def ask_dissonance(connection: Connection, pairs: Sequence[Pair]) -> Iterator[Row]:
    """What memory said last against rules of each pair."""
    return iter_rows(connection, _DISSONANCE, rows.pair_keys(pairs))


def ask_guesses(connection: Connection, macro: Pair, limit: int) -> Iterator[Row]:
    """What the Dreamer guesses for an intent."""
    return iter_rows(connection, _GUESSES, (keys.escape(macro.space), limit))


def placed(found: Iterator[Row]) -> dict[int, list[Megram]]:
    """Megrams by the place (from 0) of the pair that they belong to."""
    by_place: dict[int, list[Megram]] = {}
    for row in found:
        by_place.setdefault(int(row["place"]) - 1, []).append(rows.megram(row))
    return by_place


def wide_pairs(connection: Connection, limit: int) -> list[Pair]:
    """The pairs of tools whatever their target."""
    spaces = [bytes(row["space"]) for row in connection.execute(_WIDE, (limit,))]
    return named(connection, [(space, LOCAL.encode()) for space in spaces])


def taught(connection: Connection, task_id: str, limit: int) -> list[Megram]:
    """What a task has left, by id."""
    return [rows.megram(row) for row in connection.execute(_TAUGHT, (keys.escape(task_id), limit))]


def named(connection: Connection, parts: Sequence[tuple[bytes, bytes]]) -> list[Pair]:
    """The tags behind keys; looked up in a record where one is stored as a digest."""
    found: list[Pair] = []
    for space, entity in parts:
        tags = keys.unescape(space), keys.unescape(entity)
        if tags[0] is not None and tags[1] is not None:
            found.append(Pair(tags[0], tags[1]))
        else:
            found += [
                rows.megram({"record": row["record"], "recalled_us": None}).pair
                for row in connection.execute(_ANY, ([space], [entity]))
            ]
    return found


def _fetched(cursor: Cursor) -> Iterator[Row]:
    yield from cursor.fetchall()


def _signal(row: Row) -> Signal:
    return Signal("M", int(row["born_us"]), row["f"], row["sigma"], row["k"], row["derived"])


def requests(connection: Connection, limit: int) -> tuple[KnownRequest, ...]:
    """See the embedded `requests`."""
    found = [rows.megram(row) for row in connection.execute(_REQUESTS, (limit,))]
    spaces = [bytes(row["space"]) for row in connection.execute(_INTENTS, (SCANNED,))]
    return known_requests(found, named(connection, [(space, LOCAL.encode()) for space in spaces]), limit)
