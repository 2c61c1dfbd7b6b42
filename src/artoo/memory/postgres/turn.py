"""Who dreams: a lease by the store's clock, with an epoch that every write of the Dreamer names.

A machine that was asleep while its lease ran out finds that its epoch is past, and changes nothing.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from artoo.contracts.errors import MemoryStoreError
from artoo.ports.dream import DreamingElsewhere

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection

LEASE_SECONDS = 300
"""Longer than a pass waits for running tasks between two slices, and no longer than until the next pass."""
_US = 1_000_000

_TAKE = b"""
INSERT INTO memory_turns AS held (name, holder, epoch, until_us) VALUES ('dreamer', %s, 1, now_us() + %s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = held.epoch + 1, until_us = excluded.until_us
WHERE held.until_us <= now_us()
RETURNING epoch
"""
_KEEP = b"""
UPDATE memory_turns SET until_us = now_us() + %s WHERE name = 'dreamer' AND epoch = %s AND until_us > now_us()
"""
_GIVE_BACK = b"UPDATE memory_turns SET until_us = 0 WHERE name = 'dreamer' AND epoch = %s"
_HOLDER = b"SELECT holder, greatest(0, until_us - now_us()) / 1000000 AS seconds FROM memory_turns"


def take(connection: Connection, seconds: float = LEASE_SECONDS) -> int:
    """The epoch of the turn. Raises DreamingElsewhere naming who has it."""
    holder = f"{socket.gethostname()} ({os.getpid()})"
    row = connection.execute(_TAKE, (holder, round(seconds * _US))).fetchone()
    if row is not None:
        return int(row["epoch"])
    other = connection.execute(_HOLDER).fetchone()
    named = f"{other['holder']}, for {other['seconds']} s more at most," if other is not None else "Another machine"
    raise DreamingElsewhere(f"{named} is dreaming over this store. Try again when it has ended.")


def keep(connection: Connection, epoch: int, seconds: float = LEASE_SECONDS) -> None:
    """Prolongs the turn and keeps others out until the transaction ends. Raises MemoryStoreError when it is lost.

    The first statement of every transaction in which a Dreamer changes something.
    """
    if not connection.execute(_KEEP, (round(seconds * _US), epoch)).rowcount:
        raise MemoryStoreError(
            "This machine's turn to dream has ended, and another's may have begun; nothing more is changed now."
        )


def give_back(connection: Connection, epoch: int) -> None:
    """Lets the next one dream at once."""
    connection.execute(_GIVE_BACK, (epoch,))
