"""What shared memory is given to keep: it outlives the task, is exported and shared, and comes back in prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artoo.contracts.memory import Megram
from artoo.ports.remember import Remember


@dataclass(frozen=True, slots=True)
class WithoutSecrets:
    """Implements `ports.remember.Remember`: `store` gets texts and tags as `redacted` leaves them."""

    store: Remember
    redacted: Callable[[str], str]

    def write(self, megram: Megram) -> None:
        """See Remember."""
        clean = {name: self.redacted(getattr(megram, name)) for name in ("space", "entity", "content")}
        self.store.write(megram.model_copy(update=clean))

    def record_negative_feedback(self, rule_id: str, content: str) -> str:
        """See Remember."""
        return self.store.record_negative_feedback(rule_id, self.redacted(content))

    async def flush(self) -> None:
        """See Remember."""
        await self.store.flush()

    async def close(self) -> None:
        """See Remember."""
        await self.store.close()
