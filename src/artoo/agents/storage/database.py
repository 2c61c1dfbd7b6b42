"""Open the team's database: one for all standing agents, of a home or of several machines (SPEC sections 11, 13).

It is a SQLite file of the home (`open_file`), or a PostgreSQL that several machines share (`cluster.open_store`).
Engines block, so their transactions run in threads, which callers await.
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
"""`ARTT` in the file's header: some other program's database is not mistaken for ours."""

_RESTORE = (
    "Restore a copy of it, with what is newer than the copy lost; or move it away, and the board, the letters, the"
    " agents and what these learnt begin anew. Files that wait stay in the home either way: artoo status."
)
_UNSURE = " Whether what was being written is there is not known; look before trying again."

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two tries of a database that is away, or whose disk is full."""


class _NoRoom(ActivityStoreError):
    """The disk is full: nothing was written, and trying again may help."""


class _Unanswered(StoreAway):
    """A commit was sent, and no answer came."""


def failed(text: str, kind: Failure) -> ArtooError:
    """Return the error that says what an engine could not do."""
    kinds: dict[Failure, type[ArtooError]] = {
        "away": StoreAway,
        "unanswered": _Unanswered,
        "unready": ConfigurationError,
        "full": _NoRoom,
        "refused": StoreRefused,
    }
    return kinds.get(kind, ActivityStoreError)(text)


def database_path(url: str, home: Path) -> Path:
    """Return the file that `activity_db` means: a path after `sqlite://`, from the home unless it is absolute.

    Raises ConfigurationError when it names no file.
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
    """Return the steps of `migrations/NNNN_name.sql`: step n brings a file from version n to n + 1."""
    folder = files("artoo.agents.storage").joinpath("migrations")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    steps = tuple(file.read_text("utf-8") for file in found)
    return Schema("the activity database", APPLICATION_ID, steps, _RESTORE, "runtime.memory.episodic.activity_db")


def engine_of(path: Path, busy_seconds: float = BUSY_SECONDS) -> SqliteEngine:
    """Open the file, making or upgrading it. Blocks. Raises ActivityStoreError with what to do."""
    return SqliteEngine(path, schema(), failed, busy_seconds=busy_seconds)


async def open_file(
    path: Path,
    clock: Clock,
    *,
    holder: str | None = None,
    busy_seconds: float = BUSY_SECONDS,
    lasting: Tell | None = None,
) -> Database:
    """Open the file of a home, making or upgrading it. `holder` None: this process. `lasting`: see Database.

    Raises ActivityStoreError: damaged, of a newer artoo, not ours, not writable, no room.
    """
    engine = await asyncio.to_thread(engine_of, path, busy_seconds)
    return Database(engine, holder or holders.this_process(), clock, lasting=lasting)


class Listener(Protocol):
    """A thread that hears of other machines' writes."""

    def start(self) -> None:
        """Begin to listen."""
        ...

    def stop(self) -> None:
        """Return when the thread has ended."""
        ...


class Database:
    """An open database, as an async context manager. Waiters hear of every write of this process.

    `holder`: the name under which this process holds its claims; `place`: the database's name for people. While the
    store is away or the disk is full, a transaction is tried again for `patience` seconds, or with `lasting` until
    it succeeds; `lasting` hears of both ends of such a time. `clock` None: the database's own.
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
        # A file has one thread, so that one connection sees what others write (`Reading.version`).
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
        """Run `work` in a write transaction, durable when this returns; all of it, or nothing when it raises.

        `work` runs in another thread, perhaps more than once, and changes nothing but its argument; it may ask for
        new ids. A caller that is cancelled while waiting does not learn whether it was done. Raises
        ActivityStoreError.
        """
        tell, receipt, results = self._telling(), uuid4(), list[T]()
        # Receipts whose ends are known are deleted with the next write, so that few rows stay.
        known = [self._receipts.popleft() for _ in range(len(self._receipts))]

        def writing(query: Query) -> T:
            # An earlier try was committed, and the answer was lost.
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
        """Return a number that changes when another process has written something that a process may wait for."""
        return await self.read(Reading.version)

    async def check(self) -> tuple[str, ...]:
        """Return the problems that the engine finds in the database (it reads all of it), empty without any."""
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
        """Check whether the process of a claim is certainly gone; False when that cannot be told from here."""
        return holders.is_dead(holder, self.holder)

    def on_written(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` on the event loop after every write of this process, and of other machines as soon as the
        store says so; return the function that ends that."""
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
        """Return the wall clock, and the clock by which things wait: a store has one clock for both."""
        if query.dialect == "postgresql":
            now = self._clock.now() if self._clock else steady.moment(query.all("SELECT now_us() AS us")[0]["us"])
            return now, steady.microseconds(now)
        assert self._clock is not None
        now = self._clock.now()
        return now, move(query, steady.microseconds(now))

    async def _patiently(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; while the database is away or full, again and again."""
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
        # A small write may fit while a large one waits: that is no room yet.
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
        """Return a function that tells the waiters of this loop of a write, from any thread."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            # The loop may be gone by now; then no one waits.
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
    """An object whose methods are transactions of the database: `reads` and `writes` make them so."""

    def __init__(self, database: Database) -> None:
        self.database = database


S = TypeVar("S", bound=Stored)


def reads(work: Callable[Concatenate[S, Reading, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Make a method that is handed one consistent view into one that callers await. Raises ActivityStoreError."""

    @wraps(work)
    async def method(self: S, *args: P.args, **named: P.kwargs) -> T:
        return await self.database.read(lambda reading: work(self, reading, *args, **named))

    return method


def writes(work: Callable[Concatenate[S, Writing, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Make a method that is handed a write transaction into one that callers await (see `Database.write`)."""

    @wraps(work)
    async def method(self: S, *args: P.args, **named: P.kwargs) -> T:
        return await self.database.write(lambda writing: work(self, writing, *args, **named))

    return method
