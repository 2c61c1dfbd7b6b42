"""Connections that do not wait for ever for a server that says nothing, and pools whose errors say why.

A server whose machine is gone is noticed by the system (`keepalives`, `tcp_user_timeout`). Where only its processes
stand still, as a paused container's do, the system goes on answering, and no timeout of the server's comes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.rows import DictRow
from psycopg_pool import ConnectionPool, PoolTimeout

if TYPE_CHECKING:
    Waiting = Generator[Any, Any, Any]

SILENCE_SECONDS = 90.0
"""Longer than a statement may take (`connecting.STATEMENT_SECONDS`): then it is the server that hangs."""


class Connection(psycopg.Connection[DictRow]):
    """One that is closed when the server is silent for too long."""

    silence_seconds: float | None = SILENCE_SECONDS

    def wait(self, gen: Waiting, *args: Any, **named: Any) -> Any:
        """See psycopg."""
        return super().wait(_bounded(gen, self.silence_seconds, self.pgconn.finish), *args, **named)


def _bounded(gen: Waiting, seconds: float | None, finish: Callable[[], None]) -> Waiting:
    """`gen`, as psycopg drives it: it says what it waits for, and is sent what is ready, or (often) nothing."""
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
    """Within a transaction: its statements, and what waits for them, take as long as they take."""
    connection.execute("SET LOCAL statement_timeout = 0")
    ours = connection if isinstance(connection, Connection) else None
    if ours is not None:
        ours.silence_seconds = None
    try:
        yield
    finally:
        if ours is not None:
            ours.silence_seconds = SILENCE_SECONDS


class _Failures:
    """Why the last try to connect failed; None once one has not."""

    def __init__(self) -> None:
        self.last: psycopg.Error | None = None
        driver = logging.getLogger("psycopg")
        if driver.level == logging.WARNING:  # as psycopg itself sets it
            # It warns of each try, and of each connection that was lost: who asks is told that once, and why.
            driver.setLevel(logging.ERROR)

    @contextmanager
    def noted(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            self.last = error
            raise
        self.last = None

    @contextmanager
    def told(self) -> Generator[None]:
        """A pool that has no connection in time raises what was in the way."""
        try:
            yield
        except PoolTimeout as error:
            why = self.last
            raise error if why is None else type(why)(str(why)) from why


class Pool(ConnectionPool[psycopg.Connection[DictRow]]):
    """Of plain connections."""

    def __init__(self, conninfo: str, **settings: Any) -> None:
        failures = self._failures = _Failures()

        class Told(Connection):
            @classmethod
            def connect(cls, *args: Any, **named: Any) -> Any:
                with failures.noted():
                    return cast("Any", super()).connect(*args, **named)

        super().__init__(conninfo, connection_class=Told, **settings)

    def getconn(self, timeout: float | None = None) -> psycopg.Connection[DictRow]:
        """See psycopg_pool. Raises the error of connecting where there was one, else PoolTimeout."""
        with self._failures.told():
            return super().getconn(timeout)
