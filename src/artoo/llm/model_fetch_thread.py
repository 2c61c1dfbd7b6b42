"""Blocking file work beside the event loop, with progress, that has surely ended when the caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from artoo.llm.embedded_worker import Stop, run_in_thread

Result = TypeVar("Result")
REPORT_SECONDS = 0.2


async def in_thread(work: Callable[[Stop, Callable[[int], None]], Result], report: Callable[[int], None]) -> Result:
    """Runs `work(stop, done)` in a thread; what it tells `done` reaches `report` in this one, a few times a second.

    When cancelled, asks the work to stop and waits for it, so that a lock held by the caller covers all of it.
    """
    latest = -1

    def done(amount: int) -> None:
        nonlocal latest
        latest = amount

    future, stop = run_in_thread(lambda stop: work(stop, done), name="artoo-model-file")
    waiting = asyncio.wrap_future(future)
    try:
        while not waiting.done():
            await asyncio.wait([waiting], timeout=REPORT_SECONDS)
            if latest >= 0:
                report(latest)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([waiting])
        waiting.exception()
        raise
    return waiting.result()
