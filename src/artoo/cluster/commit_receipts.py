"""What became of a write whose answer did not come: each leaves a row in its own transaction, and takes away those
of earlier ones.

The number of a transaction (`pg_xact_status`) does not prove it: a server that crashed, or another that took over,
gives numbers anew of which nothing had reached the disk, and says `committed` of what somebody else did.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
from psycopg import errors

if TYPE_CHECKING:
    from psycopg.rows import DictRow

    Connection = psycopg.Connection[DictRow]

logger = logging.getLogger(__name__)

KEPT_DAYS = 30
"""Of killed processes, and of what was found void; who asks later than that is told that it is not known."""

LEAVE = b"""
WITH forgotten AS (DELETE FROM receipts WHERE token = ANY(%s))
INSERT INTO receipts (token) SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL
"""
"""A transaction that has changed nothing leaves none: it may be done again."""

_VOID = b"INSERT INTO receipts (token, void) VALUES (%s, TRUE) ON CONFLICT DO NOTHING"
_FOUND = b"SELECT void FROM receipts WHERE token = %s"
_SWEEP = b"DELETE FROM receipts WHERE token = ANY(%s) OR at_us < now_us() - %s"


class Receipts:
    """Those of one process. Its threads share it."""

    def __init__(self) -> None:
        self._answered: list[UUID] = []
        self._lock = threading.Lock()

    def answered(self, tokens: Iterable[UUID]) -> None:
        """Their writers know: they may go with the next write."""
        with self._lock:
            self._answered += tokens

    def to_forget(self) -> list[UUID]:
        """Those, to be forgotten by the caller alone."""
        with self._lock:
            answered, self._answered = self._answered, []
            return answered

    def sweep(self, connection: Connection) -> None:
        """Leaves nothing behind, and nothing old of processes that were killed. A process that has written nothing
        has nothing to do here. Raises psycopg.Error."""
        if answered := self.to_forget():
            connection.execute(_SWEEP, (answered, KEPT_DAYS * 86_400_000_000))


def settle(connection: Connection, token: UUID) -> bool | None:
    """Whether this write was committed; from now on it cannot be any more. None: the server is still at it.

    Waits for a transaction that is still open. Raises psycopg.Error.
    """
    try:
        connection.execute(_VOID, (token,))
    except errors.LockNotAvailable:
        return None
    row = connection.execute(_FOUND, (token,)).fetchone()
    return None if row is None else not row["void"]


def leaving(token: UUID, forgotten: Sequence[UUID]) -> tuple[bytes, tuple[list[UUID], UUID]]:
    """The last statement of a write before its COMMIT."""
    return LEAVE, (list(forgotten), token)
