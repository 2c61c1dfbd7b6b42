"""PostgreSQL connections that are closed after a time of silence.

If the machine of the server is gone, the operating system detects this (`keepalives`, `tcp_user_timeout`). But if
only the processes of the server are suspended, as in a paused container, the system keeps answering, and no timeout
of the server ends the wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import DictRow

if TYPE_CHECKING:
    Waiting = Generator[Any, Any, Any]

SILENCE_SECONDS = 90.0
"""This is longer than the timeout of a statement (`connecting.STATEMENT_SECONDS`), so only a server that hangs
exceeds it."""


class Connection(psycopg.Connection[DictRow]):
    """A connection that is closed if the server is silent for too long."""

    silence_seconds: float | None = SILENCE_SECONDS

    def wait(self, gen: Waiting, *args: Any, **named: Any) -> Any:
        """Wait as psycopg does, but with a timeout."""
        return super().wait(_bounded(gen, self.silence_seconds, self.pgconn.finish), *args, **named)


def _bounded(gen: Waiting, seconds: float | None, finish: Callable[[], None]) -> Waiting:
    """Drive `gen` as psycopg does, but with a timeout. `gen` yields the events for which it waits. It is sent the
    event that came, or nothing if none came."""
    heard, ready = time.monotonic(), None
    try:
        while True:
            waiting = gen.send(ready)
            ready = yield waiting
            if ready:
                heard = time.monotonic()
            elif seconds is not None and time.monotonic() - heard > seconds:
                finish()
                raise psycopg.OperationalError(f"the server has said nothing for {seconds:g} s")
    except StopIteration as end:
        return end.value


@contextmanager
def without_limits(connection: psycopg.Connection[Any]) -> Generator[None]:
    """Disable the timeouts for the statements of this transaction."""
    connection.execute("SET LOCAL statement_timeout = 0")
    ours = connection if isinstance(connection, Connection) else None
    if ours is not None:
        ours.silence_seconds = None
    try:
        yield
    finally:
        if ours is not None:
            ours.silence_seconds = SILENCE_SECONDS
