"""How a server's process ends: the first signal asks it to, and the tasks of its clients get an honest result."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine

LEAVE_SECONDS = 40.0
"""How long the end may take that was asked for: a store that is away may keep it for ever."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def until_asked_to_end(serving: Coroutine[None, None, None]) -> None:
    """Serves to its end, or until a signal; a second signal has its usual effect.

    The process, whose loop this is, ends `LEAVE_SECONDS` after the first whatever else it does.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(serving)
    asked = False

    def received() -> None:
        nonlocal asked
        asked = True
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        loop.call_later(LEAVE_SECONDS, os._exit, 1)
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, received)
    try:
        await task
    except asyncio.CancelledError:
        if not asked:
            raise
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
