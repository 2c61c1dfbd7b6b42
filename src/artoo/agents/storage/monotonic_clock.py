"""A steady clock in the database, and the lease of claims with its interval of renewal.

This clock never goes back.

The wall clock may jump, because a user sets it or a virtual machine is restored. If it shows an earlier time than
the last time in the database, the steady clock continues from that last time, and the jump is recorded. Times that
people see (`at`) are those of the wall clock.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from artoo.store.query import Query

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
"""Number of seconds for which a claim of a task, a review or a letter holds without renewal."""

RENEW_SECONDS = LEASE_SECONDS / 3
"""Number of seconds between two renewals. Two of three renewals may be late before a claim is lost."""

TOLERANCE_US = 2_000_000
"""A difference of up to this many µs does not count as a jump, because processes read the clock shortly before they
write."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """Convert a time to whole microseconds since 1970 UTC, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(us: int) -> datetime:
    """Convert microseconds since 1970 UTC to a time."""
    return _EPOCH + timedelta(microseconds=us)


def seconds_us(seconds: float) -> int:
    """Convert seconds to whole microseconds."""
    return round(seconds * 1_000_000)


def advance(query: Query, wall_us: int) -> int:
    """Set the steady clock forward to `wall_us` in a write transaction. Return its time (µs). A jump back of the
    wall clock is recorded."""
    last, ahead = _read(query)
    now = wall_us + ahead
    if now < last - TOLERANCE_US:
        back = last - now
        ahead += back
        query.run("INSERT INTO clock_jumps (at_us, back_us) VALUES (?, ?)", (wall_us, back))
        logger.warning(
            "the clock went back by %.1f s; waiting times and leases go on as if it had not", back / 1_000_000
        )
    # A small step back does not count as a jump, but the steady clock must not go back by it either.
    now = max(wall_us + ahead, last)
    query.run("UPDATE steady SET last_us = ?, ahead_us = ?", (now, ahead))
    return now


def peek(query: Query, wall_us: int) -> int:
    """Return the time of the steady clock (µs) for a reader, without setting it."""
    last, ahead = _read(query)
    return max(wall_us + ahead, last)


def _read(query: Query) -> tuple[int, int]:
    (row,) = query.all("SELECT last_us, ahead_us FROM steady")
    return int(row["last_us"]), int(row["ahead_us"])
