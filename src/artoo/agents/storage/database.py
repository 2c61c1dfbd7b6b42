"""The team's books: one database for all standing agents, of a home or of several machines (SPEC sections 11, 13).

`sqlite.py` keeps them in a file of the home, `postgres.py` in a PostgreSQL. Nothing else knows which it is.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from artoo.agents.board import claim_holders as holders
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts.errors import ConfigurationError
from artoo.settings.expanded import expanded

T = TypeVar("T")
P = ParamSpec("P")

SCHEME = "sqlite://"


def database_path(url: str, home: Path) -> Path:
    """The file that `activity_db` means: a path after `sqlite://`, from the home unless it is absolute.

    Raises ConfigurationError when it names no file.
    """
    path = expanded(url.removeprefix(SCHEME))
    if not url.startswith(SCHEME) or ":memory:" in url or not path.name:
        raise ConfigurationError(
            f"runtime.memory.episodic.activity_db is {url!r}, but must name a file:"
            " sqlite://./data/agent_activities.db (from the home) or sqlite:///an/absolute/path.db"
        )
    return home / path


class Database(ABC):
    """Open books, as an async context manager. Whoever uses them learns of every write of this process.

    `holder`: the name under which this process holds what it takes; `place`: where they are, for a person.
    """

    def __init__(self, place: str, holder: str) -> None:
        self.place = place
        self.holder = holder
        self._written: list[Callable[[], None]] = []

    @abstractmethod
    async def read(self, work: Callable[[Reading], T]) -> T:
        """Runs `work` on one consistent snapshot. Raises ActivityStoreError."""

    @abstractmethod
    async def write(self, work: Callable[[Writing], T]) -> T:
        """Runs `work` in a write transaction, durable when this returns; all of it, or nothing when it raises.

        `work` runs in another thread, perhaps more than once, and changes nothing but its argument; it may ask for
        new ids. Who is cancelled while waiting does not learn whether it was done. Raises ActivityStoreError.
        """

    @abstractmethod
    async def version(self) -> int:
        """A number that changes when another process has written something that somebody waits for."""

    @abstractmethod
    async def check(self) -> tuple[str, ...]:
        """What the engine finds wrong with the books, empty when nothing."""

    @abstractmethod
    async def close(self) -> None:
        """Waits for what runs and closes. Idempotent."""

    def is_dead(self, holder: str) -> bool:
        """True when the process that held something is certainly gone; False when that cannot be told from here."""
        return holders.is_dead(holder, self.holder)

    def on_written(self, call: Callable[[], None]) -> Callable[[], None]:
        """Calls `call` on the event loop after every write of this process; returns what ends that."""
        self._written.append(call)
        return lambda: self._written.remove(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _tell_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """From another thread: something was written."""
        with suppress(RuntimeError):  # the loop may be gone by now; then nobody waits
            loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for call in tuple(self._written):
            call()


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
