"""Wake up on other machines' writes by PostgreSQL LISTEN, with the seconds before a reconnection.

LISTEN uses a connection of its own, in a thread.

A notification only wakes the code that waits. That code also checks from time to time. If a notification or the
connection is lost, or a connection pooler drops notifications, this therefore only causes a delay.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg

from artoo.agents.storage.transaction import CHANNEL
from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
"""Number of seconds between two checks whether the thread is to be stopped."""
_AGAIN_SECONDS = 2.0


class Listener:
    """A thread that calls `wake` when another process than `holder` has written. It is used with `start` and
    `stop`."""

    def __init__(self, address: StoreAddress, holder: str, wake: Callable[[], None]) -> None:
        self._address = address
        self._holder = holder
        self._wake = wake
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="artoo-listener", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and return when it has ended."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except (psycopg.Error, ConfigurationError) as error:
                logger.debug("not listening to the store: %s", error)
            self._stopping.wait(_AGAIN_SECONDS)

    def _listen(self) -> None:
        with connect(self._address) as connection:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            # finds data that arrived before LISTEN took effect
            self._wake()
            while not self._stopping.is_set():
                for notice in connection.notifies(timeout=_LOOK_SECONDS):
                    if notice.payload != self._holder:
                        self._wake()
                    if self._stopping.is_set():
                        return
