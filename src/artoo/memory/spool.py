"""Keep what could not be written yet, on this machine: one bounded file for all processes of a home.

The first process that reaches the shared store again writes the entries of all processes. Commands have ids of
their own, so that what two processes write at once counts once.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.codec import failed
from artoo.memory.commands import Command
from artoo.store.query import Query
from artoo.store.sqlite import Schema, SqliteEngine

TOGETHER = 1_024
MOST_BYTES = 64 << 20
"""Some 100,000 megrams."""

_SCHEMA = Schema(
    "the memory that waits for the store in",
    0x41525750,  # "ARWP"
    ("CREATE TABLE waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL)",),
)
_log = logging.getLogger(__name__)


class Spool:
    """The commands in the order in which they came. Every method raises MemoryStoreError."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "waiting.db"
        self._opened: SqliteEngine | None = None

    def is_empty(self) -> bool:
        """True if no entry is pending, of any process."""
        if not self.path.exists() and not any(self.path.parent.glob("*.jsonl")):
            return True
        return not self._engine().read(lambda query: query.all("SELECT 1 FROM waiting LIMIT 1"))

    def add(self, commands: Sequence[Command]) -> None:
        """Keep them on disk, all or none."""
        lines = [_adapter().dump_json(each).decode() for each in commands]

        def work(query: Query) -> None:
            kept = query.all("SELECT coalesce(sum(length(command)), 0) AS bytes FROM waiting")[0]["bytes"]
            if kept + sum(map(len, lines)) > MOST_BYTES:
                raise MemoryStoreError(
                    f"{self.path} is full ({MOST_BYTES:,} bytes), and the store is still away; more is lost."
                )
            query.many("INSERT INTO waiting (command) VALUES (?)", [(line,) for line in lines])

        self._engine().write(work)

    def hand_over(self, take: Callable[[list[Command]], object]) -> None:
        """Give everything that waits to `take`, oldest first; what it took is gone here."""
        while rows := self._engine().read(
            lambda query: query.all("SELECT number, command FROM waiting ORDER BY number LIMIT ?", (TOGETHER,))
        ):
            take([found for row in rows if (found := self._command(row["command"])) is not None])
            taken = [(row["number"],) for row in rows]
            self._engine().write(lambda query, gone=taken: query.many("DELETE FROM waiting WHERE number = ?", gone))

    def close(self) -> None:
        """Let go of the file; another process may write its entries."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _engine(self) -> SqliteEngine:
        if self._opened is None:
            self._opened = SqliteEngine(self.path, _SCHEMA, failed)
            self._take_lines()
        return self._opened

    def _take_lines(self) -> None:
        """Take over what an earlier version of artoo has left: a file of lines for each process."""
        for path in sorted(self.path.parent.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
            try:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.add([found for line in file if (found := self._command(line)) is not None])
                    path.unlink()
            except OSError as error:
                _log.warning("memory: what was kept in %s cannot be read, and stays there: %s", path, error)

    def _command(self, line: str | bytes) -> Command | None:
        try:
            return _adapter().validate_json(line)
        except ValidationError:
            _log.warning("memory: an entry that waits in %s cannot be read and is left out", self.path.parent)
            return None


@cache
def _adapter() -> TypeAdapter[Command]:
    """Return what reads and writes commands; building it takes longer than opening a store."""
    return TypeAdapter(Command)
