"""Run blocking work in a thread that a cancellation does not leave running unseen."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def to_its_end(work: Callable[[], _T]) -> _T:
    """Return what `work` returns. If cancelled, wait until the work has ended, then raise CancelledError."""
    # No task: a loop that ends cancels every task it knows, and no one would wait for what the thread does.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
