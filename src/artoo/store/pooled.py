"""PostgreSQL connections that are closed after a time of silence.

The operating system detects a server whose machine is gone (`keepalives`, `tcp_user_timeout`). If only the server's
processes are suspended, as in a paused container, the system keeps answering, and no server timeout fires.
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
"""Longer than the statement timeout (`connecting.STATEMENT_SECONDS`), so only a hanging server exceeds it."""


class Connection(psycopg.Connection[DictRow]):
    """A connection that is closed if the server is silent for too long."""

    silence_seconds: float | None = SILENCE_SECONDS

    def wait(self, gen: Waiting, *args: Any, **named: Any) -> Any:
        """Wait as psycopg does, but with a timeout."""
        return super().wait(_bounded(gen, self.silence_seconds, self.pgconn.finish), *args, **named)


def _bounded(gen: Waiting, seconds: float | None, finish: Callable[[], None]) -> Waiting:
    """Drive `gen` as psycopg does, with a timeout. It yields an awaited event, and is sent this event or
    nothing."""
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
