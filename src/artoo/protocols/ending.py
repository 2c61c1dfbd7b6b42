"""Shut down a server process at the first signal, with the seconds for tasks to end.

The first signal ends only the serving, so that the tasks can end with a result.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager

LEAVE_SECONDS = 40.0
"""Maximum number of seconds from the first signal to the end of the process. Without a limit, a store that cannot
be reached could delay the end for ever."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def first_signal(stop: Callable[[], object]) -> Generator[None]:
    """While the block runs, call `stop` at the first signal. A second signal ends the process at once.

    The process also ends `LEAVE_SECONDS` after the first signal, if the block still runs then.
    """
    loop = asyncio.get_running_loop()
    asked: list[asyncio.TimerHandle] = []

    def received() -> None:
        if asked:
            os._exit(128 + signal.SIGINT)
        asked.append(loop.call_later(LEAVE_SECONDS, os._exit, 1))
        stop()

    for number in _SIGNALS:
        loop.add_signal_handler(number, received)
    try:
        yield
    finally:
        for timer in asked:
            timer.cancel()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def until_asked_to_end(serving: Coroutine[None, None, None]) -> None:
    """Await `serving` until it ends. At the first signal, cancel it."""
    task = asyncio.ensure_future(serving)
    asked = False

    def stop() -> None:
        nonlocal asked
        asked = True
        task.cancel()

    with first_signal(stop):
        try:
            await task
        except asyncio.CancelledError:
            if not asked:
                raise
