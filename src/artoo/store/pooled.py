"""Define connections that do not wait for ever for a server that says nothing.

A server whose machine is gone is noticed by the system (`keepalives`, `tcp_user_timeout`). Where only its processes
stand still, as a paused container's do, the system goes on answering, and no timeout of the server's comes.
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
"""Longer than a statement may take (`connecting.STATEMENT_SECONDS`): then it is the server that hangs."""


class Connection(psycopg.Connection[DictRow]):
    """A connection that is closed when the server is silent for too long."""

    silence_seconds: float | None = SILENCE_SECONDS

    def wait(self, gen: Waiting, *args: Any, **named: Any) -> Any:
        """Wait as psycopg does, but not for ever."""
        return super().wait(_bounded(gen, self.silence_seconds, self.pgconn.finish), *args, **named)


def _bounded(gen: Waiting, seconds: float | None, finish: Callable[[], None]) -> Waiting:
    """Follow `gen` as psycopg drives it: it yields the awaited event, and is sent that event or (often) nothing."""
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
    """Set no limits of time for the statements of this transaction."""
    connection.execute("SET LOCAL statement_timeout = 0")
    ours = connection if isinstance(connection, Connection) else None
    if ours is not None:
        ours.silence_seconds = None
    try:
        yield
    finally:
        if ours is not None:
            ours.silence_seconds = SILENCE_SECONDS
