"""Store task logs and audit anchors of machines in PostgreSQL, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

PIECE_BYTES = 1 << 20

_SEEN = b"""
INSERT INTO machines (id, name, program, first_seen_us, last_seen_us) VALUES (%s, %s, %s, now_us(), now_us())
ON CONFLICT (id) DO UPDATE SET program = excluded.program, last_seen_us = now_us()
"""
_END = b"""
SELECT end_byte FROM stream_pieces WHERE machine = %(machine)s AND file = %(file)s ORDER BY start_byte DESC LIMIT 1
"""
_PUT = (
    b"""
INSERT INTO stream_pieces (machine, file, start_byte, end_byte, task, content)
SELECT %(machine)s, %(file)s, %(start)s, %(end)s, %(task)s, %(content)s WHERE coalesce(("""
    + _END
    + b"""), 0) = %(start)s
ON CONFLICT (machine, file, start_byte) DO NOTHING
"""
)
_ANCHOR = b"""
INSERT INTO audit_anchors (machine, number, hash, chain, event, count, head) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (machine, number) DO NOTHING
"""
_WITNESS = b"""
INSERT INTO audit_witnesses (witness, machine, number, hash, chain) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (witness, machine, number) DO NOTHING
"""
_LATEST_TASKS = b"""
WITH RECURSIVE latest (task) AS (
    (SELECT task FROM stream_pieces WHERE task IS NOT NULL ORDER BY task USING ~>~ LIMIT 1)
    UNION ALL
    SELECT (SELECT s.task FROM stream_pieces s WHERE s.task ~<~ latest.task ORDER BY s.task USING ~>~ LIMIT 1)
    FROM latest WHERE latest.task IS NOT NULL
)
SELECT task FROM latest WHERE task IS NOT NULL LIMIT %s
"""
"""Task ids begin with the time. The query needs one index look-up for each task, however many pieces the task
has."""

_EXTENTS = b"""
SELECT machine, file, max(end_byte) AS size, (now_us() - max(kept_us)) / 1000000.0 AS age
FROM stream_pieces WHERE task = %s AND machine <> %s GROUP BY machine, file ORDER BY machine, file
"""
_FROM = b"""
SELECT start_byte, content FROM stream_pieces
WHERE machine = %s AND file = %s AND end_byte > %s AND start_byte < %s ORDER BY start_byte
"""
_ANCHORS = b"""
SELECT machine, number, hash, chain, event, count, head FROM audit_anchors WHERE machine = %s ORDER BY number
"""
_LATEST = b"""
SELECT DISTINCT ON (machine) machine, number, hash, chain, event, count, head
FROM audit_anchors WHERE machine <> %s ORDER BY machine, number DESC
"""


@dataclass(frozen=True, slots=True)
class KeptAnchor:
    """A line of a machine's chain of anchors: its number and its hash, and what it says about a chain."""

    machine: str
    number: int
    hash: str
    chain: str
    event: str
    count: int
    head: str


def seen(connection: Connection, machine: str, program: str) -> None:
    """Record that this machine uses the store."""
    connection.execute(_SEEN, (machine, machine, program))


def sizes(connection: Connection, machine: str) -> dict[str, int]:
    """Return the number of stored bytes of each of this machine's files."""
    query = b"SELECT file, max(end_byte) AS size FROM stream_pieces WHERE machine = %s GROUP BY file"
    return {str(row["file"]): int(row["size"]) for row in connection.execute(query, (machine,))}


def put(connection: Connection, machine: str, file: str, start: int, content: bytes, task: str | None) -> int:
    """Store a piece of a file if it follows the stored pieces, and return the stored size of the file.

    Several processes of a machine send the same files. A piece that another process has stored in the meantime is
    not stored again. Pieces never overlap, and there are no gaps between them.
    """
    given = {"machine": machine, "file": file, "start": start, "end": start + len(content)}
    if connection.execute(_PUT, {**given, "task": task, "content": content}).rowcount:
        return start + len(content)
    row = connection.execute(_END, given).fetchone()
    return int(row["end_byte"]) if row is not None else 0


def forget(connection: Connection, machine: str, task: str) -> None:
    """Delete this machine's pieces of a task's log. Copies that other machines have fetched are not affected."""
    connection.execute(b"DELETE FROM stream_pieces WHERE machine = %s AND task = %s", (machine, task))


def tasks(connection: Connection, beginning: str, limit: int) -> list[tuple[str, str]]:
    """Return the tasks whose ids begin with `beginning`, each as a pair of machine and task."""
    escaped = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    query = b"SELECT DISTINCT machine, task FROM stream_pieces WHERE task LIKE %s ORDER BY task, machine LIMIT %s"
    return [(str(row["machine"]), str(row["task"])) for row in connection.execute(query, (f"{escaped}%", limit))]


def latest_tasks(connection: Connection, limit: int) -> list[str]:
    """Return the tasks of all machines that began last, latest first."""
    return [str(row["task"]) for row in connection.execute(_LATEST_TASKS, (limit,))]


@dataclass(frozen=True, slots=True)
class Extent:
    """A file of a task: the number of stored bytes, and the age in seconds of the newest stored piece."""

    machine: str
    file: str
    size: int
    age: float


def extents(connection: Connection, task: str, but: str) -> list[Extent]:
    """Return the files of a task on all machines except the machine `but`."""
    return [
        Extent(str(row["machine"]), str(row["file"]), int(row["size"]), float(row["age"]))
        for row in connection.execute(_EXTENTS, (task, but))
    ]


def part(connection: Connection, machine: str, file: str, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to `end`. If the file ends earlier, return the bytes up to its
    end."""
    found = [
        bytes(row["content"])[max(0, start - int(row["start_byte"])) : end - int(row["start_byte"])]
        for row in connection.execute(_FROM, (machine, file, start, end))
    ]
    return b"".join(found)


def files(connection: Connection, machine: str, *, task: str | None) -> list[str]:
    """Return the files of one task. If `task` is None, return all files that belong to no task."""
    query = (
        b"SELECT DISTINCT file FROM stream_pieces WHERE machine = %s AND task IS NOT DISTINCT FROM %s ORDER BY file"
    )
    return [str(row["file"]) for row in connection.execute(query, (machine, task))]


def content(connection: Connection, machine: str, file: str) -> Iterator[bytes]:
    """Return an iterator over the pieces of a file in order, which ends at the first gap."""
    at = 0
    query = b"SELECT end_byte, content FROM stream_pieces WHERE machine = %s AND file = %s AND start_byte = %s"
    while (row := connection.execute(query, (machine, file, at)).fetchone()) is not None:
        yield bytes(row["content"])
        at = int(row["end_byte"])


def add_anchors(connection: Connection, anchors: Sequence[KeptAnchor]) -> None:
    """Store lines of a machine's anchors. Lines that are already stored are not changed."""
    for each in anchors:
        given = (each.machine, each.number, each.hash, each.chain, each.event, each.count, each.head)
        connection.execute(_ANCHOR, given)


def anchors_kept(connection: Connection, machine: str) -> int:
    """Return the number of the last line of a machine's anchors that is stored."""
    row = connection.execute(
        b"SELECT coalesce(max(number), 0) AS number FROM audit_anchors WHERE machine = %s", (machine,)
    ).fetchone()
    return int(row["number"]) if row is not None else 0


def anchors_of(connection: Connection, machine: str) -> list[KeptAnchor]:
    """Return the stored anchors of a machine, in order."""
    return [_anchor(row) for row in connection.execute(_ANCHORS, (machine,))]


def latest_of_others(connection: Connection, machine: str) -> list[KeptAnchor]:
    """Return the latest anchor of every other machine."""
    return [_anchor(row) for row in connection.execute(_LATEST, (machine,))]


def add_witness(connection: Connection, witness: str, chain: str, seen_anchor: KeptAnchor) -> None:
    """Record that the machine `witness` has recorded an anchor of another machine in its own chain `chain`."""
    connection.execute(_WITNESS, (witness, seen_anchor.machine, seen_anchor.number, seen_anchor.hash, chain))


def machines(connection: Connection) -> list[str]:
    """Return the machines that use the store."""
    return [str(row["id"]) for row in connection.execute(b"SELECT id FROM machines ORDER BY id")]


def _anchor(row: DictRow) -> KeptAnchor:
    return KeptAnchor(
        str(row["machine"]), int(row["number"]), str(row["hash"]), str(row["chain"]), str(row["event"]),
        int(row["count"]), str(row["head"]),
    )  # fmt: skip
