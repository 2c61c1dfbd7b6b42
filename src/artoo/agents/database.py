"""The activity database: one SQLite file for all standing agents of a home (SPEC section 11).

Several processes may use it at once. SQLite blocks, so a thread of its own holds the one connection of this
process; everything else awaits it. A write that returned is on disk and survives kill -9 and a power cut.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from artoo.agents import holders, steady
from artoo.agents.opening import connect, explained
from artoo.agents.transaction import Reading, Writing
from artoo.contracts.errors import ActivityStoreError, ConfigurationError
from artoo.ports.clock import Clock

T = TypeVar("T")

SCHEME = "sqlite://"
BUSY_SECONDS = 10.0
"""How long a transaction waits for those of other processes."""


def database_path(url: str, home: Path) -> Path:
    """The file that `activity_db` means: a path after `sqlite://`, from the home unless it is absolute.

    Raises ConfigurationError when it names no file.
    """
    path = Path(url.removeprefix(SCHEME)).expanduser()
    if not url.startswith(SCHEME) or ":memory:" in url or not path.name:
        raise ConfigurationError(
            f"runtime.memory.episodic.activity_db is {url!r}, but must name a file:"
            " sqlite://./data/agent_activities.db (from the home) or sqlite:///an/absolute/path.db"
        )
    return home / path


class Database:
    """An open activity database. Use `await Database.open(…)`, then as an async context manager."""

    def __init__(self, path: Path, clock: Clock, holder: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self.holder = holder
        self._clock = clock
        self._connection = connection
        self._thread: ThreadPoolExecutor | None = None
        self._written: list[Callable[[], None]] = []

    @classmethod
    async def open(
        cls, path: Path, clock: Clock, *, holder: str | None = None, busy_seconds: float = BUSY_SECONDS
    ) -> Database:
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

    async def read(self, work: Callable[[Reading], T]) -> T:
        """Runs `work` on one consistent snapshot. Raises ActivityStoreError."""
        return await self._in_thread(lambda: self._read(work))

    async def write(self, work: Callable[[Writing], T]) -> T:
        """Runs `work` in a write transaction, on disk when this returns; all of it, or nothing when it raises.

        `work` runs in another thread and must touch nothing but its argument. Who is cancelled while waiting
        does not learn whether it was done. Raises ActivityStoreError.
        """
        loop = asyncio.get_running_loop()
        return await self._in_thread(lambda: self._write(work, loop))

    async def version(self) -> int:
        """A number that changes when another process has written."""
        return await self._in_thread(lambda: int(self._connection.execute("PRAGMA data_version").fetchone()[0]))

    def on_written(self, call: Callable[[], None]) -> Callable[[], None]:
        """Calls `call` on the event loop after every write of this process; returns what ends that."""
        self._written.append(call)
        return lambda: self._written.remove(call)

    async def check(self) -> tuple[str, ...]:
        """What SQLite finds wrong with the file, empty when nothing (reads all of it)."""
        rows = await self.read(lambda reading: reading.all("PRAGMA quick_check(20)"))
        return tuple(str(row[0]) for row in rows if row[0] != "ok")

    async def close(self) -> None:
        """Waits for what runs and closes the file. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        await asyncio.get_running_loop().run_in_executor(thread, self._connection.close)
        thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

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
                return work(Reading(self._connection, now, us, self.holder))
            finally:
                self._roll_back()

    def _write(self, work: Callable[[Writing], T], loop: asyncio.AbstractEventLoop) -> T:
        with explained(self.path, "write to"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                now = self._clock.now()
                us = steady.advance(self._connection, steady.microseconds(now))
                result = work(Writing(self._connection, now, us, self.holder))
                self._connection.execute("COMMIT")
            finally:
                self._roll_back()
        with suppress(RuntimeError):  # the loop may be gone by now; then nobody waits
            loop.call_soon_threadsafe(self._tell)
        return result

    def _roll_back(self) -> None:
        """Ends a transaction that is still open; after some errors SQLite has already done so."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _tell(self) -> None:
        for call in tuple(self._written):
            call()
