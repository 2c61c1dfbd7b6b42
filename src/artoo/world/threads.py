"""Work in threads that a cancellation does not leave running unseen: its end is awaited."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def to_its_end(work: Callable[[threading.Event], _T]) -> _T:
    """What `work` returns. It is told of a cancellation, and may finish what it has begun."""
    gone = threading.Event()
    return await _awaited(lambda: work(gone), gone.set, lambda _: None)


async def or_undone(work: Callable[[], _T], undo: Callable[[_T], None]) -> _T:
    """What `work` returns; when nobody waits for it any more, it is undone."""
    return await _awaited(work, lambda: None, undo)


async def _awaited(work: Callable[[], _T], tell: Callable[[], None], undo: Callable[[_T], None]) -> _T:
    # No task: a loop that ends cancels every task that it knows, and what the thread makes would be nobody's.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        tell()
        await asyncio.wait({running})
        if running.exception() is None:  # a failure is nobody's any more
            undo(running.result())
        raise
