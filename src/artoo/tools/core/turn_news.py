"""Write the news before a model's turn, such as files saved by others and ended processes.

refresh of the workspace ─► files that both sides changed, files that the user saved, processes that ended
changes in a new folder  ─► the guide of that folder
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.errors import ArtooError
from artoo.contracts.text import listed
from artoo.ports.workspace import Workspace
from artoo.tools.builtin.process import in_a_line
from artoo.tools.context.agents_md import Guide
from artoo.tools.core.call_changes import CallChanges
from artoo.tools.core.processes import Processes, Tracked
from artoo.tools.core.to_thread import in_thread
from artoo.tools.files.paths import shown
from artoo.tools.provenance.read_tracking import LookedAt

_MOST_NAMED = 8
_BOTH = "The user and this task both changed {paths}: what is seen here is the task's version, and it is a conflict"
_SAVED = "Saved by somebody else since it was shown: {paths}; read it again before relying on it"
_UNSEEN = "The user's files could not be looked at anew: {error}"
_RESUMED = "The task was interrupted, and goes on now. Files here:\n{listing}"
_DIED = "Ended when artoo was interrupted: process {processes}. Start it again if it is needed"


async def _nothing() -> tuple[str, ...]:
    """Apply no changes between turns; return no paths."""
    return ()


def _no_guides(places: Iterable[Path]) -> tuple[Guide, ...]:
    """Return no guides, for a task without guides."""
    return ()


@dataclass(slots=True, eq=False)
class TurnNews:
    """Reports to each subtask of a task the events since its last turn.

    `died`: the processes that ended in a crash of artoo, by subtask, each as `ID (command)`. `settle_live` applies
    ordinary changes before the user's files are compared, if the user has chosen that mode. `listing` lists the
    files of a task that resumes after an interruption. Each subtask gets it once, because the user may have changed
    files meanwhile. `guides_at`: returns the guides in and above directories. It is asked about the directories in
    which `changes` shows that a subtask has changed files.
    """

    workspace: Workspace
    looked: LookedAt
    processes: Processes
    died: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    settle_live: Callable[[], Awaitable[tuple[str, ...]]] = _nothing
    listing: Callable[[], Awaitable[str]] | None = None
    changes: CallChanges | None = None
    guides_at: Callable[[Iterable[Path]], tuple[Guide, ...]] = _no_guides
    _facts: list[str] = field(default_factory=list[str])
    _told: dict[str, int] = field(default_factory=dict[str, int])
    _places: dict[str, frozenset[Path]] = field(default_factory=dict[str, frozenset[Path]])
    _guided: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, subtask: str) -> tuple[str, ...]:
        """Refresh the workspace from the user's current files. Return the news for this subtask."""
        async with self._turn:
            await self._refresh()
            goes_on = self.listing is not None and subtask not in self._told
            told, self._told[subtask] = self._told.get(subtask, 0), len(self._facts)
        died = self.died.pop(subtask, ())
        facts = [_DIED.format(processes=listed(died, _MOST_NAMED))] if died else []
        if goes_on and self.listing is not None:
            facts.append(_RESUMED.format(listing=await self.listing()))
        ended = map(_ended, self.processes.ended_unseen(subtask))
        return (*facts, *self._facts[told:], *ended, *await self._guides(subtask))

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

    async def _guides(self, subtask: str) -> tuple[str, ...]:
        """Return the guides of the directories in which the subtask has begun to change files, except guides that
        it was already shown."""
        places = frozenset[Path]() if self.changes is None else self.changes.places_of(subtask)
        if places == self._places.get(subtask, frozenset()):
            return ()
        self._places[subtask] = places
        known = self._guided.setdefault(subtask, {guide.path for guide in await in_thread(self.guides_at, ())})
        fresh = [guide for guide in await in_thread(self.guides_at, places) if guide.path not in known]
        known.update(guide.path for guide in fresh)
        return tuple(map(str, fresh))

    def _add(self, fact: str) -> None:
        if fact not in self._facts[-1:]:
            self._facts.append(fact)


def _ended(tracked: Tracked) -> str:
    ended = tracked.process.ended
    code = "" if ended is None or ended.exit_code is None else f" with exit code {ended.exit_code}"
    return f"Process {tracked.id} ended{code}: {in_a_line(tracked.command.text)}"
