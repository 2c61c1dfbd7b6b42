"""The books in one SQLite file of the home.

Several processes may use it at once. SQLite blocks, so a thread of its own holds the one connection of this
process; everything else awaits it. A write that returned is on disk and survives kill -9 and a power cut.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from artoo.agents.board import claim_holders as holders
from artoo.agents.storage import monotonic_clock as steady
from artoo.agents.storage.database import Database
from artoo.agents.storage.sqlite_open import connect, explained, is_full
from artoo.agents.storage.transaction import Hold, Parameters, Reading, Writing
from artoo.contracts.errors import ActivityStoreError
from artoo.ports.clock import Clock

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a transaction waits for those of other processes."""
ROOM_SECONDS = 5.0
"""Between two tries to write to a full disk, by who waits for room."""


class EmbeddedDatabase(Database):
    """An open activity database. Use `await EmbeddedDatabase.open(…)`, then as an async context manager."""

    def __init__(self, path: Path, clock: Clock, holder: str, connection: sqlite3.Connection) -> None:
        super().__init__(f"the activity database {path}", holder)
        self.path = path
        self._clock = clock
        self._connection = connection
        self._engine = _Engine(connection)
        self._thread: ThreadPoolExecutor | None = None
        self._tell_no_room: Callable[[str], None] | None = None
        self._has_room = True
        self._waiting = 0

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, *, holder: str | None = None, busy_seconds: float = BUSY_SECONDS
    ) -> EmbeddedDatabase:
        """Opens the file, making or upgrading it. `holder` None: this process.

        Raises ActivityStoreError: damaged, of a newer artoo, not ours, not writable, no room.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="artoo-activity")
        loop = asyncio.get_running_loop()
        try:
            connection = await loop.run_in_executor(thread, connect, path, busy_seconds)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        opened = cls(path, clock, holder or holders.this_process(), connection)
        opened._thread = thread
        return opened

    def wait_for_room(self, tell: Callable[[str], None]) -> None:
        """From now on a write that finds the disk full waits for room; `tell` hears so, and when there is some."""
        self._tell_no_room = tell

    async def read(self, work: Callable[[Reading], T]) -> T:
        """See Database."""
        return await self._in_thread(lambda: self._read(work))

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
                    if self._tell_no_room is None or not is_full(error):
                        raise
                    if not waits:
                        waits = True
                        self._waiting += 1
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
        return await self._in_thread(lambda: int(self._connection.execute("PRAGMA data_version").fetchone()[0]))

    async def check(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file (reads all of it)."""
        rows = await self.read(lambda reading: reading.all("PRAGMA quick_check(20)"))
        return tuple(said for row in rows if (said := str(row["quick_check"])) != "ok")

    async def close(self) -> None:
        """See Database."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        await asyncio.get_running_loop().run_in_executor(thread, self._connection.close)
        thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            raise ActivityStoreError(f"The activity database {self.path} is closed; open it again before using it.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _read(self, work: Callable[[Reading], T]) -> T:
        with explained(self.path, "read"):
            self._connection.execute("BEGIN")
            try:
                now = self._clock.now()
                us = steady.peek(self._connection, steady.microseconds(now))
                return work(Reading(self._engine, now, us, self.holder))
            finally:
                self._roll_back()

    def _write(self, work: Callable[[Writing], T], loop: asyncio.AbstractEventLoop) -> T:
        with explained(self.path, "write to"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                now = self._clock.now()
                us = steady.advance(self._connection, steady.microseconds(now))
                result = work(Writing(self._engine, now, us, self.holder))
                self._connection.execute("COMMIT")
            finally:
                self._roll_back()
        self._tell_on(loop)
        return result

    def _roll_back(self) -> None:
        """Ends a transaction that is still open; after some errors SQLite has already done so."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


class _Engine:
    """Implements `transaction.Engine`. A writer is alone anyway, so nothing has to be held."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._store: str | None = None

    @property
    def store(self) -> str:
        """See Engine."""
        if self._store is None:
            row = self._connection.execute("SELECT value FROM marks WHERE name = 'store'").fetchone()
            self._store = str(row[0])
        return self._store

    def execute(self, sql: str, parameters: Parameters) -> sqlite3.Cursor:
        """See Engine."""
        return self._connection.execute(sql, parameters)

    def put(self, sql: str, parameters: Parameters) -> None:
        """See Engine."""
        self._connection.execute(sql, parameters)

    def holding(self, sql: str, hold: Hold) -> str:
        """See Engine."""
        return sql

    def first(self, row: sqlite3.Row) -> object:
        """See Engine."""
        return row[0]

    def next_number(self) -> int:
        """See Engine."""
        self._connection.execute(
            "UPDATE marks SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'number'"
        )
        row = self._connection.execute("SELECT CAST(value AS INTEGER) FROM marks WHERE name = 'number'").fetchone()
        return int(row[0])

    def arrived(self, name: str) -> None:
        """See Engine."""
        self._connection.execute(
            "INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,)
        )

    def alone(self, what: str) -> None:
        """See Engine."""
