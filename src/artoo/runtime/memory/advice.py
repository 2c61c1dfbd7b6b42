"""What memory advises, for whoever asks it outside a task: the command line, and other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artoo.contracts.tags import Pair
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.config.model import Config

if TYPE_CHECKING:
    from artoo.contracts.memory import Potentials, SOPRecord


@dataclass(frozen=True, slots=True)
class Advice:
    """What memory advises about a pair now: its potentials, and its ten newest rules, newest first."""

    potentials: Potentials
    rules: tuple[SOPRecord, ...]


async def advice_about(config: Config, pair: Pair) -> Advice:
    """What the seed's own interface says of a pair. Whoever looks a rule up uses it: its clock restarts.

    Raises MemoryStoreError.
    """
    from artoo.memory.opening import open_store  # an engine only where something is recalled

    memory = await open_store(config.memory_place, config.memory_spool, SystemClock(), UuidIds())
    try:
        return Advice(await memory.query_mk(*pair), await memory.query_c(*pair))
    finally:
        await memory.close()
