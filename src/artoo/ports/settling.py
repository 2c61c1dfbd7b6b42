"""What settles a task's changes: all of them when R7 has said that the task ends, ordinary ones earlier if the user
wants that (SPEC section 8)."""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.settling import Ending, Settled
from artoo.ports.confirm import Questions


class Settling(Protocol):
    """The gate's last act in a task."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Applies the task's difference, or keeps it pending, or forgets it, as Law 1 and the person say.

        `questions` None: nobody is asked. May be repeated after a crash: what took effect is told, not done again.
        Raises SandboxError when the system refuses; then nothing was applied and the difference is still there.
        """
        ...

    async def settle_live(self) -> tuple[str, ...]:
        """Apply ordinary changes between two turns if `--apply live` is set; return their printable paths.

        Never raises: what cannot be applied now is settled at the end of the task.
        """
        ...


class NothingToSettle:
    """For tasks that have no workspace. Implements Settling."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Nothing was changed."""
        return Settled()

    async def settle_live(self) -> tuple[str, ...]:
        """Nothing was changed."""
        return ()
