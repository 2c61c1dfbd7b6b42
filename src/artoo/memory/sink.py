"""Where the writer's batches go: the engine's side of writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from artoo.memory.commands import Command
from artoo.memory.environment import Environment, Transaction
from artoo.memory.ledger import Ledger


class Sink(Protocol):
    """Called by the writer's thread alone."""

    @property
    def again_after(self) -> float | None:
        """Seconds after which `store` is to be called even with nothing new; None: never."""
        ...

    def store(self, commands: Sequence[Command]) -> int:
        """Applies a batch in order, all of it or nothing; how many took effect. Empty: tries what was held back.

        Raises RecordDamaged when one command cannot be stored (the batch is then halved until it stands alone),
        MemoryStoreError when none can.
        """
        ...

    def close(self) -> None:
        """Lets go of what only the writer used. What is held back stays for the next start."""
        ...


class LedgerSink:
    """Implements `Sink` over an LMDB file, whose process has a transaction of its own for each batch."""

    again_after: float | None = None

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def store(self, commands: Sequence[Command]) -> int:
        """See the port."""
        if not commands:
            return 0
        return self._environment.write(lambda transaction: _apply(transaction, commands))

    def close(self) -> None:
        """Nothing is the writer's alone: the environment is closed by whoever opened it."""


def _apply(transaction: Transaction, commands: Sequence[Command]) -> int:
    ledger = Ledger(transaction)
    done = sum(command.apply(ledger) for command in commands)
    ledger.finish()
    return done
