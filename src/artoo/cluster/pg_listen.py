"""Hear of other machines' writes: LISTEN on a connection of its own, in a thread.

It is a wake-up and nothing else. Waiters look for themselves now and then, so that a lost notification, a lost
connection or a pooler that passes none on costs time only.
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
"""How soon `stop` is noticed."""
_AGAIN_SECONDS = 2.0


class Listener:
    """A thread that calls `wake` for writes of others than `holder`. `start` and `stop` it."""

    def __init__(self, address: StoreAddress, holder: str, wake: Callable[[], None]) -> None:
        self._address = address
        self._holder = holder
        self._wake = wake
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="artoo-listener", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended."""
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
            # Arrivals from before it listened are found by this look.
            self._wake()
            while not self._stopping.is_set():
                for notice in connection.notifies(timeout=_LOOK_SECONDS):
                    if notice.payload != self._holder:
                        self._wake()
                    if self._stopping.is_set():
                        return
