"""Store the writer's batches: in the store, or on the local disk while a shared store is away."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from artoo.memory.codec import MemoryAway, RecordDamaged
from artoo.memory.commands import Command, apply
from artoo.memory.spool import Spool
from artoo.store.query import Engine

RETRY_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Sink:
    """The destination of batches, for the writer's thread alone. What fails is stored later, in its order."""

    def __init__(self, engine: Engine, spool: Spool | None) -> None:
        self._engine = engine
        self._spool = spool
        self._behind = True
        """Something may wait: the spool is looked at before anything new is stored."""
        self.again_after: float | None = None
        """Seconds after which `store` is to be called even with nothing new; None: never."""

    def store(self, commands: Sequence[Command]) -> int:
        """Apply a batch in order, all of it or nothing; how many took effect. Empty: try what was held back.

        What is kept on the local disk counts as done. Raises RecordDamaged when one command cannot be stored (the
        batch is then halved until it stands alone), MemoryStoreError when none can.
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
        """Let go of what only the writer used. What is held back stays for the next start."""
        if self._spool is not None:
            self._spool.close()

    def _keep(self, spool: Spool, commands: Sequence[Command], error: MemoryAway) -> None:
        if not self.again_after:
            _log.warning("memory: kept on this machine until the store is back: %s", error)
        spool.add(commands)
        self._behind, self.again_after = True, RETRY_SECONDS

    def _catch_up(self, spool: Spool) -> None:
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
        """Store what can be stored; a command that never can be is named and left out."""
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
