"""A call's wall limit stands still while a person is asked: people may take their time, tools may not."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[asyncio.Timeout | None] = ContextVar("artoo_tool_limit", default=None)


@contextmanager
def under_limit(limit: asyncio.Timeout) -> Generator[None]:
    """Makes `limit`, already entered, the one that `waiting_for_a_person` stops."""
    token = _current.set(limit)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def waiting_for_a_person() -> Generator[None]:
    """Stops the clock of the current tool call, if there is one, and gives it the rest of its time afterwards."""
    limit = _current.get()
    until = None if limit is None else limit.when()
    if limit is None or until is None or limit.expired():
        yield
        return
    left = until - asyncio.get_running_loop().time()
    limit.reschedule(None)
    try:
        yield
    finally:
        limit.reschedule(asyncio.get_running_loop().time() + left)
