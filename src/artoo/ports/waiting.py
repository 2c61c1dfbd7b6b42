"""Pause the time limits of tools and attempts while a user is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_limits: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("artoo_limits", default=())


@contextmanager
def under_limit(limit: asyncio.Timeout) -> Generator[None]:
    """Let `waiting_for_a_person` suspend `limit` too, in this asyncio task. The limit must already have been
    entered."""
    token = _limits.set((*_limits.get(), limit))
    try:
        yield
    finally:
        _limits.reset(token)


def limits_here() -> tuple[asyncio.Timeout, ...]:
    """Return the time limits that apply to the running code, the outermost first."""
    return _limits.get()


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Return a context that suspends all time limits that apply here. At its end, each limit gets back the time
    that had remained."""
    loop = asyncio.get_running_loop()
    stopped = [
        (limit, until - loop.time())
        for limit in _limits.get()
        if (until := limit.when()) is not None and not limit.expired()
    ]
    # Suspend all limits, because otherwise an outer limit could end the task while the user reads.
    for limit, _ in stopped:
        limit.reschedule(None)
    try:
        yield
    finally:
        for limit, left in stopped:
            if not limit.expired():
                limit.reschedule(loop.time() + left)
