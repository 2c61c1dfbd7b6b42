"""How a server's process ends: the first signal asks it to, and the tasks of its clients get an honest result."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def until_asked_to_end(serving: Coroutine[None, None, None]) -> None:
    """Serves to its end, or until a signal; a second signal has its usual effect."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(serving)
    asked = False

    def received() -> None:
        nonlocal asked
        asked = True
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
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
