"""What the model must know before a turn because it happened outside its calls.

refresh of the workspace ─► files that both sides changed, files that the user saved, processes that ended
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from artoo.contracts.errors import ArtooError
from artoo.contracts.shortened import listed
from artoo.ports.workspace import Workspace
from artoo.tools.builtin.process import in_a_line
from artoo.tools.looked_at import LookedAt
from artoo.tools.paths import shown
from artoo.tools.processes import Processes, Tracked
from artoo.tools.threads import in_thread

_MOST_NAMED = 8
_BOTH = "The user and this task both changed {paths}: what is seen here is the task's version, and it is a conflict"
_SAVED = "Saved by somebody else since it was shown: {paths}; read it again before relying on it"
_UNSEEN = "The user's files could not be looked at anew: {error}"
_DIED = "Ended when artoo was interrupted: process {processes}. Start it again if it is needed"


async def _nothing() -> tuple[str, ...]:
    """Apply nothing between turns."""
    return ()


@dataclass(slots=True, eq=False)
class TurnNews:
    """Tells each subtask of a task what happened since its last turn.

    `died`: processes that a crash ended, by subtask, each as `ID (command)`. `settle_live` applies ordinary changes
    before the user's files are looked at, if the user wants that.
    """

    workspace: Workspace
    looked: LookedAt
    processes: Processes
    died: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    settle_live: Callable[[], Awaitable[tuple[str, ...]]] = _nothing
    _facts: list[str] = field(default_factory=list[str])
    _told: dict[str, int] = field(default_factory=dict[str, int])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, subtask: str) -> tuple[str, ...]:
        """Show the workspace the user's files as they are now, and return what this subtask is to know."""
        async with self._turn:
            await self._refresh()
            told, self._told[subtask] = self._told.get(subtask, 0), len(self._facts)
        died = self.died.pop(subtask, ())
        facts = [_DIED.format(processes=listed(died, _MOST_NAMED))] if died else []
        return (*facts, *self._facts[told:], *map(_ended, self.processes.ended_unseen(subtask)))

    async def _refresh(self) -> None:
        await self.settle_live()
        try:
            both = await self.workspace.refresh()
        except ArtooError as error:
            self._add(_UNSEEN.format(error=error))
            return
        if both:
            self._add(_BOTH.format(paths=listed(both, _MOST_NAMED)))
        for note in self.workspace.notes:
            if note not in self._facts:
                self._facts.append(note)
        if self.looked.empty:
            return
        saved = await in_thread(self.looked.saved_since, self.workspace.files)
        if saved:
            paths = [shown(path, self.workspace.roots) for path in saved]
            self._add(_SAVED.format(paths=listed(paths, _MOST_NAMED)))

    def _add(self, fact: str) -> None:
        if fact not in self._facts[-1:]:
            self._facts.append(fact)


def _ended(tracked: Tracked) -> str:
    ended = tracked.process.ended
    code = "" if ended is None or ended.exit_code is None else f" with exit code {ended.exit_code}"
    return f"Process {tracked.id} ended{code}: {in_a_line(tracked.command.text)}"
