"""The two engines of the books, under the same tests: a file, or a database of a real server.

A test that opens books with `open_books` runs on both when its module asks for the fixture `engine`.
"""

from __future__ import annotations

from pathlib import Path

from artoo.agents.storage.database import Database, open_file
from artoo.cluster.cluster import open_store
from artoo.ports.clock import Clock
from artoo.store.address import StoreAddress
from postgres_server import Server


class Stores:
    """Databases of one test: one for each directory in which it keeps books."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._made: dict[Path, StoreAddress] = {}

    def of(self, directory: Path) -> StoreAddress:
        """The store that stands for the books in `directory`."""
        if directory not in self._made:
            self._made[directory] = self._server.new_database()
        return self._made[directory]

    def drop(self) -> None:
        """Removes them."""
        for address in self._made.values():
            self._server.drop(address)


class Choice:
    """Which engine the running test is on. None: the embedded one."""

    stores: Stores | None = None


async def open_books(directory: Path, clock: Clock, *, holder: str = "here") -> Database:
    """The books in `directory`, by the engine that the test runs on. Time is `clock`'s, for a test to move."""
    if Choice.stores is None:
        return await open_file(directory / "a.db", clock, holder=holder)
    return await open_store(Choice.stores.of(directory), holder=holder, clock=clock)
