"""Stop time limits while a user is asked: people may take their time, tools and attempts may not."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_limits: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("artoo_limits", default=())


@contextmanager
def under_limit(limit: asyncio.Timeout) -> Generator[None]:
    """Add `limit`, already entered, to the limits that `waiting_for_a_person` stops in this task."""
    token = _limits.set((*_limits.get(), limit))
    try:
        yield
    finally:
        _limits.reset(token)


def limits_here() -> tuple[asyncio.Timeout, ...]:
    """Return the time limits around this point, outermost first."""
    return _limits.get()


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Stop all limits around this point, and give each the rest of its time afterwards."""
    loop = asyncio.get_running_loop()
    stopped = [
        (limit, until - loop.time())
        for limit in _limits.get()
        if (until := limit.when()) is not None and not limit.expired()
    ]
    # All limits at once: an inner one alone would let an outer one end the task while the user reads.
    for limit, _ in stopped:
        limit.reschedule(None)
    try:
        yield
    finally:
        for limit, left in stopped:
            if not limit.expired():
                limit.reschedule(loop.time() + left)
