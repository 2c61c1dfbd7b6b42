"""Send and receive byte parcels in the store, in pieces with hashes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO

from artoo.contracts.errors import ActivityStoreError

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

PIECE_BYTES = 1 << 20

_THERE = b"SELECT number, sha256 FROM difference_pieces WHERE task = %s AND submission = %s"
_PUT = b"""
INSERT INTO difference_pieces (task, submission, number, sha256, content) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (task, submission, number) DO UPDATE SET sha256 = excluded.sha256, content = excluded.content
"""
_SURPLUS = b"DELETE FROM difference_pieces WHERE task = %s AND submission = %s AND number >= %s"
_GET = b"SELECT sha256, content FROM difference_pieces WHERE task = %s AND submission = %s AND number = %s"


def send(connection: Connection, task: str, submission: int, parcel: BinaryIO) -> None:
    """Store the parcel in pieces. Pieces that are already stored are not sent again, and pieces that the parcel
    does not have are deleted.

    Raises psycopg.Error. If the row in `differences` was deleted in the meantime, this is a foreign-key violation.
    """
    there = {int(row["number"]): str(row["sha256"]) for row in connection.execute(_THERE, (task, submission))}
    parcel.seek(0)
    count = 0
    while piece := parcel.read(PIECE_BYTES):
        sha256 = hashlib.sha256(piece).hexdigest()
        if there.get(count) != sha256:
            connection.execute(_PUT, (task, submission, count, sha256, piece))
        count += 1
    connection.execute(_SURPLUS, (task, submission, count))


def receive(connection: Connection, task: str, submission: int, sha256: str, into: BinaryIO) -> None:
    """Write the parcel to `into` piece by piece, and go back to the beginning of `into`.

    Raises ActivityStoreError if a hash does not match because the parcel was deleted or changed in the meantime.
    """
    whole, number = hashlib.sha256(), 0
    while (row := connection.execute(_GET, (task, submission, number)).fetchone()) is not None:
        piece = bytes(row["content"])
        if hashlib.sha256(piece).hexdigest() != row["sha256"]:
            raise _damaged(task, submission)
        whole.update(piece)
        into.write(piece)
        number += 1
    if whole.hexdigest() != sha256:
        raise _damaged(task, submission)
    into.seek(0)


def sha256_of(parcel: BinaryIO) -> tuple[int, str]:
    """Return the size of a parcel in bytes and its sha256."""
    parcel.seek(0)
    size, total = 0, hashlib.sha256()
    while piece := parcel.read(PIECE_BYTES):
        size += len(piece)
        total.update(piece)
    return size, total.hexdigest()


def _damaged(task: str, submission: int) -> ActivityStoreError:
    return ActivityStoreError(
        f"What the store holds of submission {submission} of task {task} is not whole any more:"
        " look again; reject it if that stays so."
    )
