"""The team's database in one SQLite file of the home.

Several processes may use it at once. SQLite blocks, so a thread of its own uses it; everything else awaits that.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from artoo.agents.board import claim_holders as holders
from artoo.agents.storage import monotonic_clock as steady
from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Hold, Reading, Writing
from artoo.contracts.errors import ActivityStoreError
from artoo.ports.clock import Clock
from artoo.store.query import Query
from artoo.store.sqlite import BUSY_SECONDS, Schema, SqliteEngine

T = TypeVar("T")

APPLICATION_ID = 0x41525454
"""`ARTT` in the file's header: some other program's database is not mistaken for ours."""

_RESTORE = (
    "Restore a copy of it, with what is newer than the copy lost; or move it away, and the board, the letters, the"
    " agents and what these learnt begin anew. Files that wait stay in the home either way: artoo status."
)

ROOM_SECONDS = 5.0
"""Between two tries to write to a full disk, by who waits for room."""


@cache
def schema() -> Schema:
    """The steps of `migrations/NNNN_name.sql`: step n brings a file from version n to n + 1."""
    folder = files("artoo.agents.storage").joinpath("migrations")
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    steps = tuple(file.read_text("utf-8") for file in found)
    return Schema("the activity database", APPLICATION_ID, steps, _RESTORE, "runtime.memory.episodic.activity_db")


def engine_of(path: Path, busy_seconds: float = BUSY_SECONDS) -> SqliteEngine:
    """Open the file, making or upgrading it. Blocks. Raises ActivityStoreError with what to do."""
    return SqliteEngine(path, schema(), lambda text, kind: ActivityStoreError(text), busy_seconds=busy_seconds)


class EmbeddedDatabase(Database):
    """An open activity database. Use `await EmbeddedDatabase.open(…)`, then as an async context manager."""

    def __init__(self, path: Path, clock: Clock, holder: str, engine: SqliteEngine) -> None:
        super().__init__(f"the activity database {path}", holder)
        self.path = path
        self._clock = clock
        self._engine = engine
        self._thread: ThreadPoolExecutor | None = None
        self._tell_no_room: Callable[[str], None] | None = None
        self._has_room = True
        self._waiting = 0

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, *, holder: str | None = None, busy_seconds: float = BUSY_SECONDS
    ) -> EmbeddedDatabase:
        """Open the file, making or upgrading it. `holder` None: this process.

        Raises ActivityStoreError: damaged, of a newer artoo, not ours, not writable, no room.
        """
        # One thread, so that one connection sees what others write (`version`).
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="artoo-activity")
        try:
            engine = await asyncio.get_running_loop().run_in_executor(thread, engine_of, path, busy_seconds)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        opened = cls(path, clock, holder or holders.this_process(), engine)
        opened._thread = thread
        return opened

    def wait_for_room(self, tell: Callable[[str], None]) -> None:
        """From now on a write that finds the disk full waits for room; `tell` hears so, and when there is some."""
        self._tell_no_room = tell

    async def read(self, work: Callable[[Reading], T]) -> T:
        """See Database."""

        def reading(query: Query) -> T:
            now = self._clock.now()
            us = steady.peek(query, steady.microseconds(now))
            return work(Reading(_Embedded(query), now, us, self.holder))

        return await self._in_thread(lambda: self._engine.read(reading))

    async def write(self, work: Callable[[Writing], T]) -> T:
        """See Database."""
        loop = asyncio.get_running_loop()
        waits = False
        try:
            while True:
                try:
                    result = await self._in_thread(lambda: self._write(work, loop))
                    break
                except ActivityStoreError as error:
                    if self._tell_no_room is None or not _is_full(error):
                        raise
                    self._waiting += not waits
                    waits = True
                    if self._has_room:
                        self._has_room = False
                        self._tell_no_room(f"{error} Nothing new is begun until then.")
                    await asyncio.sleep(ROOM_SECONDS)
        finally:
            self._waiting -= waits
        # A small write may fit while a large one waits: that is no room yet.
        if self._tell_no_room is not None and not self._has_room and not self._waiting:
            self._has_room = True
            self._tell_no_room(f"There is room for {self.place} again; what waited is written.")
        return result

    async def version(self) -> int:
        """See Database: any write of another process."""
        return await self.read(lambda reading: reading.count("PRAGMA data_version"))

    async def check(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file (reads all of it)."""
        return await self._in_thread(lambda: tuple(self._engine.read(lambda query: query.problems())))

    async def close(self) -> None:
        """See Database."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        await asyncio.get_running_loop().run_in_executor(thread, self._engine.close)
        thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            raise ActivityStoreError(f"The activity database {self.path} is closed; open it again before using it.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _write(self, work: Callable[[Writing], T], loop: asyncio.AbstractEventLoop) -> T:
        def writing(query: Query) -> T:
            now = self._clock.now()
            us = steady.advance(query, steady.microseconds(now))
            return work(Writing(_Embedded(query), now, us, self.holder))

        result = self._engine.write(writing)
        self._tell_on(loop)
        return result


def _is_full(error: ActivityStoreError) -> bool:
    """Whether it was only room that was missing: nothing was written, and trying again may help."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF == sqlite3.SQLITE_FULL


class _Embedded:
    """Implements `transaction.Engine`. A writer is alone anyway, so nothing has to be held."""

    def __init__(self, query: Query) -> None:
        self.all = query.all
        self.run = self.put = query.run

    def holding(self, sql: str, hold: Hold) -> str:
        """See Engine."""
        return sql

    def store(self) -> str:
        """See Engine."""
        return str(self.all("SELECT value FROM marks WHERE name = 'store'")[0]["value"])

    def next_number(self) -> int:
        """See Engine."""
        counted = "UPDATE marks SET value = CAST(value + 1 AS TEXT) WHERE name = 'number' RETURNING value"
        return int(self.all(counted)[0]["value"])

    def arrived(self, name: str) -> None:
        """See Engine."""
        self.run("INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,))

    def alone(self, what: str) -> None:
        """See Engine."""
