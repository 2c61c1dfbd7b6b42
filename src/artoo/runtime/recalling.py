"""What memory advises, for whoever asks it outside a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artoo.contracts.tags import pair_named
from artoo.runtime.config import Config
from artoo.runtime.system import SystemClock

if TYPE_CHECKING:
    from artoo.memory.insight import Advice


def advice_about(config: Config, words: str) -> Advice:
    """About a pair as people write it (contracts.tags.pair_named). Blocking. Raises MemoryStoreError."""
    from artoo.memory.environment import open_environment  # LMDB only where something is recalled
    from artoo.memory.insight import advise

    environment = open_environment(config.memory_path)
    try:
        return advise(environment, pair_named(words), SystemClock().now())
    finally:
        environment.close()
