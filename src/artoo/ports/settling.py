"""The interface by which a task's changes are applied, at its end or earlier with `--apply live`.

Ordinary changes are applied earlier if the user wants that. Reference: SPEC section 8.
"""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.settling import Ending, Settled
from artoo.ports.confirm import Questions


class Settling(Protocol):
    """The interface of the gate for applying the changes of a task."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Apply the task's changes, keep them pending, or discard them, as Law 1 and the user decide.

        If `questions` is None, no user is asked. The call may be repeated after a crash: changes that were already
        applied are reported, but they are not applied again. Raises SandboxError if the system refuses; then no
        change was applied and all changes are still in the workspace."""
        ...

    async def settle_live(self) -> tuple[str, ...]:
        """If `--apply live` is set, apply ordinary changes between two turns, and return the printable paths of the
        changed files.

        This method never raises: changes that cannot be applied now are applied at the end of the task.
        """
        ...


class NothingToSettle:
    """An implementation of Settling for a task that has no workspace."""

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """Return an empty result, because without a workspace nothing was changed."""
        return Settled()

    async def settle_live(self) -> tuple[str, ...]:
        """Return an empty result, because without a workspace nothing was changed."""
        return ()
