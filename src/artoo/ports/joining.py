"""How the work of parallel subtasks becomes the task's: the dispatcher says when, the task's view does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from artoo.contracts.changes import Clash


class Joining(Protocol):
    """Folds what subtasks did, each in its own fork, into the view of the task (`ports.world`)."""

    async def join(self, subtask_ids: Sequence[str]) -> tuple[Clash, ...]:
        """Folds the forks in this order; a subtask that changed nothing has none. May be repeated after a crash.

        A path that two of them left differently keeps the earlier one's version, and is returned with both ids.
        Raises SandboxError when a fork cannot be read.
        """
        ...
