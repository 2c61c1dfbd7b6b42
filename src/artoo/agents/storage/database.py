"""Open the team's database, migrate its schema, run transactions in threads, and set the pauses of its retries.

All agents of a home, or of several machines, use the same database. Reference: SPEC sections 11, 13.

It is a SQLite file of the home (`open_file`), or a PostgreSQL database that several machines share
(`cluster.open_store`). The database engines block, so transactions run in threads, for which the callers wait.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import cache, wraps
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar
from uuid import UUID, uuid4

from artoo.agents.board import claim_holders as holders
from artoo.agents.storage import monotonic_clock as steady
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts.errors import ActivityStoreError, ArtooError, ConfigurationError, StoreAway, StoreRefused
from artoo.ports.clock import Clock
from artoo.settings.expanded import expanded
from artoo.store.query import Engine, Failure, Query
from artoo.store.sqlite import BUSY_SECONDS, Schema, SqliteEngine

T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]

SCHEME = "sqlite://"

APPLICATION_ID = 0x41525454
"""`ARTT` in the header of the file, by which a database of another program is recognised."""

_RESTORE = (
    "Restore a copy of it, with what is newer than the copy lost; or move it away, and the board, the letters, the"
    " agents and what these learnt begin anew. Files that wait stay in the home either way: artoo status."
)
_UNSURE = " Whether what was being written is there is not known; look before trying again."

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Number of seconds between two attempts while the database cannot be reached, or its disk is full."""


class _NoRoom(ActivityStoreError):
    """Raised if the disk is full. Nothing was written, and a later attempt may succeed."""


class _Unanswered(StoreAway):
    """Raised if a commit was sent and no answer was received, so that it is not known whether it happened."""


def failed(text: str, kind: Failure) -> ArtooError:
    """Return the exception that stands for a failure of an engine."""
    kinds: dict[Failure, type[ArtooError]] = {
        "away": StoreAway,
        "unanswered": _Unanswered,
        "unready": ConfigurationError,
        "full": _NoRoom,
        "refused": StoreRefused,
    }
    return kinds.get(kind, ActivityStoreError)(text)


def database_path(url: str, home: Path) -> Path:
    """Return the file that `activity_db` names: the path after `sqlite://`, relative to the home unless absolute.

    Raises ConfigurationError if it names no file.
    """
    path = expanded(url.removeprefix(SCHEME))
    if not url.startswith(SCHEME) or ":memory:" in url or not path.name:
        raise ConfigurationError(
            f"runtime.memory.episodic.activity_db is {url!r}, but must name a file:"
            " sqlite://./data/agent_activities.db (from the home) or sqlite:///an/absolute/path.db"
        )
    return home / path


@cache
def schema() -> Schema:
    """Return the steps of the migration, from the files `migrations/NNNN_name.sql`. Step n upgrades a file from
    version n to n + 1."""
    folder = files("artoo.agents.storage").joinpath("migrations")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    steps = tuple(file.read_text("utf-8") for file in found)
    return Schema("the activity database", APPLICATION_ID, steps, _RESTORE, "runtime.memory.episodic.activity_db")


def engine_of(path: Path, busy_seconds: float = BUSY_SECONDS) -> SqliteEngine:
    """Open the file. It is created or upgraded if necessary. Blocks. Raises ActivityStoreError that says what to
    do."""
    return SqliteEngine(path, schema(), failed, busy_seconds=busy_seconds)


async def open_file(
    path: Path,
    clock: Clock,
    *,
    holder: str | None = None,
    busy_seconds: float = BUSY_SECONDS,
    lasting: Tell | None = None,
) -> Database:
    """Open the file of a home. It is created or upgraded if necessary. `holder`: the name for claims (None: the
    name of this process). `lasting`: see Database.

    Raises ActivityStoreError if the file is damaged, is that of a newer artoo or of another program, or cannot be
    written, or if the disk is full.
    """
    engine = await asyncio.to_thread(engine_of, path, busy_seconds)
    return Database(engine, holder or holders.this_process(), clock, lasting=lasting)


class Listener(Protocol):
    """A thread that listens for writes of other machines."""

    def start(self) -> None:
        """Start the thread."""
        ...

    def stop(self) -> None:
        """Stop the thread, and return when it has ended."""
        ...


class Database:
    """An open database. It is used as an async context manager. Tasks of this process that wait are notified of
    every write of this process.

    `holder`: the name under which this process holds its claims. `place`: the name of the database in messages to
    people. While the store cannot be reached or the disk is full, a transaction is retried for `patience` seconds.
    If `lasting` is given, it is retried without limit. `lasting` is called when such a period begins and when it
    ends. `clock`: the clock to use (None: that of the database).
    """

    def __init__(
        self,
        engine: Engine,
        holder: str,
        clock: Clock | None,
        *,
        threads: int = 1,
        patience: float = 0.0,
        lasting: Tell | None = None,
        listen: Callable[[Callable[[], None]], Listener] | None = None,
    ) -> None:
        self.place = engine.place
        self.holder = holder
        self._engine = engine
        self._clock = clock
        self._patience = math.inf if lasting else patience
        self._tells: tuple[Tell, ...] = (logger.warning, lasting) if lasting else (logger.warning,)
        # For a file there is only one thread and one connection, by which writes of other processes are noticed
        # (`Reading.version`).
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(threads, thread_name_prefix="artoo-team")
        self._listen = listen
        self._listener: Listener | None = None
        self._receipts: deque[UUID] = deque()
        self._written: list[Callable[[], None]] = []
        self._waiting = 0
        self._away = False

    async def read(self, work: Callable[[Reading], T]) -> T:
        """Run `work` on one consistent snapshot. Raises ActivityStoreError."""

        def reading(query: Query) -> T:
            now, us = self._time(query, steady.peek)
            return work(Reading(query, now, us, self.holder))

        return await self._patiently(lambda: self._engine.read(reading))

    async def write(self, work: Callable[[Writing], T]) -> T:
        """Run `work` in a write transaction. The transaction is durable when this returns. If `work` raises an
        exception, nothing is written.

        `work` runs in another thread, possibly several times. It may change only its argument, but may create new
        ids. A caller that is cancelled while it waits cannot know whether the transaction was committed. Raises
        ActivityStoreError.
        """
        tell, receipt, results = self._telling(), uuid4(), list[T]()
        # The receipts of writes whose outcome is known are deleted with the next write, so that only few rows
        # accumulate.
        known = [self._receipts.popleft() for _ in range(len(self._receipts))]

        def writing(query: Query) -> T:
            # An earlier attempt was committed, but its answer was lost.
            if not query.first_time(receipt, known):
                return results[-1]
            now, us = self._time(query, steady.advance)
            transaction = Writing(query, now, us, self.holder)
            result = work(transaction)
            transaction.finish()
            results.append(result)
            return result

        def attempt() -> T:
            result = self._engine.write(writing)
            self._receipts.append(receipt)
            tell()
            return result

        return await self._patiently(attempt)

    async def version(self) -> int:
        """Return a number that changes when another process has written data for which an agent may wait."""
        return await self.read(Reading.version)

    async def check(self) -> tuple[str, ...]:
        """Check the whole database, and return the problems that the engine finds."""
        return await self._patiently(lambda: tuple(self._engine.read(lambda query: query.problems())))

    async def close(self) -> None:
        """Wait for running transactions and close. Idempotent."""
        threads, self._threads = self._threads, None
        if threads is None:
            return
        if self._listener is not None:
            self._listener.stop()
        await asyncio.get_running_loop().run_in_executor(threads, self._end)
        threads.shutdown(wait=False)

    def is_dead(self, holder: str) -> bool:
        """Check whether the process that holds a claim has certainly ended. Return False if this cannot be
        determined on this machine."""
        return holders.is_dead(holder, self.holder)

    def on_written(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` on the event loop after every write of this process, and after a write of another machine if
        the store reports it. Returns a function that ends this."""
        if self._listener is None and self._listen is not None:
            self._listener = self._listen(self._telling())
            self._listener.start()
        self._written.append(call)
        return lambda: self._written.remove(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _time(self, query: Query, move: Callable[[Query, int], int]) -> tuple[datetime, int]:
        """Return the time of the wall clock and that of the steady clock. For a store, both are the same clock."""
        if query.dialect == "postgresql":
            now = self._clock.now() if self._clock else steady.moment(query.all("SELECT now_us() AS us")[0]["us"])
            return now, steady.microseconds(now)
        assert self._clock is not None
        now = self._clock.now()
        return now, move(query, steady.microseconds(now))

    async def _patiently(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread. Retry while the database cannot be reached or is full."""
        until, tries, unsure, waits = time.monotonic() + self._patience, 0, False, False
        try:
            while True:
                try:
                    result = await self._in_thread(work)
                    break
                except (StoreAway, _NoRoom) as error:
                    unsure = unsure or isinstance(error, _Unanswered)
                    if self._patience and not self._away:
                        self._away = True
                        self._say(f"{error} Nothing new is begun until then.")
                    if time.monotonic() >= until:
                        if unsure:
                            raise StoreAway(f"{error}{_UNSURE}") from error.__cause__
                        raise
                    self._waiting += not waits
                    waits = True
                    await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                    tries += 1
        finally:
            self._waiting -= waits
        # A small write may succeed while a large one still fails, so the disk counts as full until no write waits.
        if self._away and not self._waiting:
            self._away = False
            self._say(f"Writing goes on: {self.place} can be used again.")
        return result

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise ActivityStoreError(f"The books in {self.place} are closed; open them again before using them.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _end(self) -> None:
        if self._receipts and not self._away:
            self._engine.forget(tuple(self._receipts))
        self._engine.close()

    def _telling(self) -> Callable[[], None]:
        """Return a function that notifies the waiting tasks of this loop of a write. It may be called in any
        thread."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            # If the loop is closed, no task waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._tell)

        return tell

    def _tell(self) -> None:
        for call in tuple(self._written):
            call()

    def _say(self, sentence: str) -> None:
        for tell in self._tells:
            tell(sentence)


class Stored:
    """An object whose methods are database transactions. The decorators `reads` and `writes` make them so."""

    def __init__(self, database: Database) -> None:
        self.database = database


S = TypeVar("S", bound=Stored)


def reads(work: Callable[Concatenate[S, Reading, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Convert a method that takes a snapshot of the database into a coroutine. Raises ActivityStoreError."""

    @wraps(work)
    async def method(self: S, *args: P.args, **named: P.kwargs) -> T:
        return await self.database.read(lambda reading: work(self, reading, *args, **named))

    return method


def writes(work: Callable[Concatenate[S, Writing, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Convert a method that takes a write transaction into a coroutine (see `Database.write`)."""

    @wraps(work)
    async def method(self: S, *args: P.args, **named: P.kwargs) -> T:
        return await self.database.write(lambda writing: work(self, writing, *args, **named))

    return method
