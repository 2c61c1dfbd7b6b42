"""Keep a clock in the database that never goes back: leases, waits and ages are measured by it.

The wall clock may jump: a user sets it, a virtual machine is restored. When it is behind what the database has
seen, the steady clock goes on from there, and the jump is recorded. What people read (`at`) is the wall clock.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from artoo.store.query import Query

logger = logging.getLogger(__name__)

TOLERANCE_US = 2_000_000
"""Processes read the clock a little before they write: this much is no jump."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """Return whole microseconds since 1970 UTC, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    """Return the inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=us)


def seconds_us(seconds: float) -> int:
    """Return seconds as whole microseconds."""
    return round(seconds * 1_000_000)


def advance(query: Query, wall_us: int) -> int:
    """Return the steady clock's time (µs), moved on to `wall_us`, in a write transaction. Record a jump back."""
    last, ahead = _read(query)
    now = wall_us + ahead
    if now < last - TOLERANCE_US:
        back = last - now
        ahead += back
        query.run("INSERT INTO clock_jumps (at_us, back_us) VALUES (?, ?)", (wall_us, back))
        logger.warning(
            "the clock went back by %.1f s; waiting times and leases go on as if it had not", back / 1_000_000
        )
    # Small steps back are no jump, but time must not go back by them either.
    now = max(wall_us + ahead, last)
    query.run("UPDATE steady SET last_us = ?, ahead_us = ?", (now, ahead))
    return now


def peek(query: Query, wall_us: int) -> int:
    """Return the steady clock's time (µs) for a reader, which moves nothing."""
    last, ahead = _read(query)
    return max(wall_us + ahead, last)


def _read(query: Query) -> tuple[int, int]:
    (row,) = query.all("SELECT last_us, ahead_us FROM steady")
    return int(row["last_us"]), int(row["ahead_us"])
