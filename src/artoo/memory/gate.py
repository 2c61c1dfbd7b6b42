"""Many transactions, or one change of the map: LMDB's memory map may only move while nothing looks at it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Gate:
    """A shared and an exclusive side. Whoever wants the exclusive side is let in before new shared ones."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._exclusive = False

    @contextmanager
    def shared(self) -> Generator[None]:
        """Held during a transaction. A thread must not enter twice."""
        with self._condition:
            while self._exclusive:
                self._condition.wait()
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                if not self._inside:
                    self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Held while the map changes: waits until no transaction is open in this process."""
        with self._condition:
            while self._exclusive:
                self._condition.wait()
            self._exclusive = True
            while self._inside:
                self._condition.wait()
        try:
            yield
        finally:
            with self._condition:
                self._exclusive = False
                self._condition.notify_all()
