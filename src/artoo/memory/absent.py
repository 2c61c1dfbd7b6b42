"""No memory: what a task gets when the store is unusable or the operator turned memory off."""

from __future__ import annotations

from collections.abc import Sequence

from artoo.contracts.memory import Calibration, Megram, MemoryAction, Potentials, SOPRecord
from artoo.contracts.tags import Pair


class NoMemory:
    """Implements both ports: recalls nothing, forgets everything, never fails. `reason` is for people."""

    def __init__(self, reason: str = "memory is off") -> None:
        self.reason = reason

    async def query_c(self, space: str, entity: str) -> tuple[SOPRecord, ...]:
        """No rules."""
        return ()

    async def query_mk(self, space: str, entity: str) -> Potentials:
        """Ignore."""
        return Potentials(space=space, entity=entity, attention=0.0, decision=0.0, action=MemoryAction.IGNORE)

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        """Ignore, for each."""
        return tuple([await self.query_mk(pair.space, pair.entity) for pair in pairs])

    async def calibrate(self, intent: str, pairs: Sequence[Pair] = ()) -> Calibration:
        """No advice."""
        return Calibration()

    async def known(self, space: str, entity: str) -> tuple[Megram, ...]:
        """Nothing."""
        return ()

    async def alternatives(self, intent: str, limit: int = 5) -> tuple[Potentials, ...]:
        """None."""
        return ()

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        """Nothing."""
        return ()

    def write(self, megram: Megram) -> None:
        """Lets it go."""

    def record_negative_feedback(self, rule_id: str, content: str) -> None:
        """Lets it go."""

    async def flush(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to close."""
