"""Runs blocking work in a thread that a cancellation does not leave behind: its end is awaited."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def _nothing(result: object) -> None:
    """Undo nothing."""


async def in_thread(work: Callable[[], _T], undo: Callable[[_T], object] = _nothing) -> _T:
    """Return what `work` returns. If the caller is cancelled meanwhile, `undo` gets the result."""
    # No task: a loop that ends cancels every task that it knows, and nobody would own what the thread makes.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if running.exception() is None:
            undo(running.result())
        raise
