"""Queue writes on disk while the store is unreachable, with its size limit and the interval of retries.

The first process that can reach the shared store again writes the entries of all processes. Commands have ids. If
two processes write the same command at the same time, it is stored only once.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.memory.codec import MemoryAway, RecordDamaged, failed
from artoo.memory.commands import Command, apply
from artoo.store.query import Engine, Query
from artoo.store.sqlite import Schema, SqliteEngine

TOGETHER = 1_024
MOST_BYTES = 64 << 20
"""Maximum size of the queue in bytes, which is enough for about 100,000 megrams."""

RETRY_SECONDS = 5.0

_SCHEMA = Schema(
    "the memory that waits for the store in",
    # The header of the file contains this number, which is "ARWP" in ASCII.
    0x41525750,
    ("CREATE TABLE waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL)",),
)
_log = logging.getLogger(__name__)


class MemorySpool:
    """The commands that are not stored yet, in the order in which they arrived. Every method raises
    MemoryStoreError."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "waiting.db"
        self._opened: SqliteEngine | None = None

    def is_empty(self) -> bool:
        """Return whether no process of this home has an entry in the queue."""
        if not self.path.exists() and not any(self.path.parent.glob("*.jsonl")):
            return True
        return not self._engine().read(lambda query: query.all("SELECT 1 FROM waiting LIMIT 1"))

    def add(self, commands: Sequence[Command]) -> None:
        """Store the commands on disk, in one transaction."""
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
        """Pass all commands to `take`, oldest first. Delete the commands that it has taken."""
        while rows := self._engine().read(
            lambda query: query.all("SELECT number, command FROM waiting ORDER BY number LIMIT ?", (TOGETHER,))
        ):
            take([found for row in rows if (found := self._command(row["command"])) is not None])
            # The commands are deleted only after `take`. A crash in between sends them twice, which does no harm
            # because they have ids.
            taken = [(row["number"],) for row in rows]
            self._engine().write(lambda query, gone=taken: query.many("DELETE FROM waiting WHERE number = ?", gone))

    def close(self) -> None:
        """Close the file. The entries stay, and another process may write them."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _engine(self) -> SqliteEngine:
        if self._opened is None:
            self._opened = SqliteEngine(self.path, _SCHEMA, failed)
            self._take_lines()
        return self._opened

    def _take_lines(self) -> None:
        """Import the files of an earlier version of artoo. That version had a file of JSON lines for each
        process."""
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


class Sink:
    """The destination of batches. Only the writer's thread uses it. Commands that fail are stored later, in their
    order."""

    def __init__(self, engine: Engine, spool: MemorySpool | None) -> None:
        self._engine = engine
        self._spool = spool
        self._behind = True
        """True if the spool may contain entries, which must be stored before new ones."""
        self.again_after: float | None = None
        """Number of seconds after which `store` must be called again even if there are no new commands. None means
        never."""

    def store(self, commands: Sequence[Command]) -> int:
        """Apply a batch in order, in one transaction. Return how many commands had an effect. An empty batch tries
        to store the entries in the spool.

        Commands that are kept on the local disk count as done. Raises RecordDamaged if one command cannot be
        stored. The caller then halves the batch to find it. Raises MemoryStoreError if no command can be stored.
        """
        if self._spool is None:
            return self._apply(commands) if commands else 0
        try:
            self._catch_up(self._spool)
            return self._apply(commands) if commands else 0
        except MemoryAway as error:
            if commands:
                self._keep(self._spool, commands, error)
            return len(commands)

    def close(self) -> None:
        """Close the spool. Its entries are kept for the next start."""
        if self._spool is not None:
            self._spool.close()

    def _keep(self, spool: MemorySpool, commands: Sequence[Command], error: MemoryAway) -> None:
        if not self.again_after:
            _log.warning("memory: kept on this machine until the store is back: %s", error)
        spool.add(commands)
        self._behind, self.again_after = True, RETRY_SECONDS

    def _catch_up(self, spool: MemorySpool) -> None:
        if not self._behind:
            return
        stored = 0

        def take(commands: list[Command]) -> None:
            nonlocal stored
            stored += self._salvaged(commands)

        if not spool.is_empty():
            spool.hand_over(take)
        self._behind, self.again_after = False, None
        if stored:
            _log.warning("memory: the store is back; %d entries that were kept on this machine are in it", stored)

    def _salvaged(self, commands: list[Command]) -> int:
        """Store as many commands as possible. Return their number. A command that can never be stored is logged and
        left out."""
        try:
            done = self._apply(commands)
        except RecordDamaged as error:
            if len(commands) == 1:
                _log.warning("memory: an entry that was kept on this machine cannot be stored: %s", error)
                return 0
            middle = len(commands) // 2
            return self._salvaged(commands[:middle]) + self._salvaged(commands[middle:])
        if done < len(commands):
            gone = len(commands) - done
            _log.warning("memory: %d entries that were kept here speak of a memory that is gone", gone)
        return done

    def _apply(self, commands: Sequence[Command]) -> int:
        return self._engine.write(lambda query: apply(query, commands))


@cache
def _adapter() -> TypeAdapter[Command]:
    """Return the encoder and decoder of commands. The result is cached, because building it takes longer than
    opening a store."""
    return TypeAdapter(Command)
