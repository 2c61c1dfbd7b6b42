"""Define the settlement of a task's changes: all of them when R7 ends the task, ordinary ones earlier if the user
wants that (SPEC section 8).
"""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.settling import Ending, Settled
from artoo.ports.confirm import Questions


class Settling(Protocol):
    """The gate's last operation in a task."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Apply the task's changes, keep them pending, or discard them, as Law 1 and the user decide.

        `questions` None: no user is asked. May be repeated after a crash: changes that took effect are reported,
        and not applied again. Raises SandboxError when the system refuses; then nothing was applied and the
        difference is still there.
        """
        ...

    async def settle_live(self) -> tuple[str, ...]:
        """Apply ordinary changes between two turns if `--apply live` is set; return their printable paths.

        Never raises: changes that cannot be applied now are settled at the end of the task.
        """
        ...


class NothingToSettle:
    """The settlement of a task that has no workspace. Implements Settling."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Report that nothing was changed."""
        return Settled()

    async def settle_live(self) -> tuple[str, ...]:
        """Report that nothing was changed."""
        return ()
