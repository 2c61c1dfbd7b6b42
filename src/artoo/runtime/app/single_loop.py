"""Check that an Artoo is opened only once at a time, and used in one event loop."""

from __future__ import annotations

import asyncio

from artoo.contracts.errors import ConfigurationError


class OneLoop:
    """The event loop that opened an Artoo. The connections, locks and background tasks of the Artoo belong to that
    loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> bool:
        """Mark the Artoo as open. Return True if the Artoo is still marked as open although its earlier loop was
        closed.

        Raises ConfigurationError if it is open already. A second opening would audit and log everything twice, and
        closing it would close the first one too. The error is also raised if the earlier loop was closed with
        unfinished tasks, because no one can wait for these.
        """
        before = self._loop
        left = before is not None and before.is_closed() and not asyncio.all_tasks(before)
        if before is not None and not left:
            raise ConfigurationError(
                "this Artoo is already open; open it once, and pass on the object that `async with` returned"
            )
        self._loop = asyncio.get_running_loop()
        return left

    def require(self) -> None:
        """Raise ConfigurationError if called in any other event loop, because waiting there would never end."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            # A caller outside of any loop does not wait for anything, so it may continue.
            return
        if running is not self._loop:
            raise ConfigurationError(
                "this Artoo was opened in another event loop; open one in each loop (with pytest-asyncio: let the"
                " fixture and the test have the same loop scope)"
            )

    def close(self) -> None:
        """Mark the Artoo as closed, so that it can be opened again."""
        self._loop = None
