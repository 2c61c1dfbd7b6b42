"""Attribute workspace changes to calls, when subtasks and processes run in parallel.

begin ─► Mark ─► … the call … ─► end ─► changes since the mark, and whether another call or process ran meanwhile

Changes that a background process makes between two calls are attributed to the call that ends next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Mark, Workspace
from artoo.tools.provenance.read_tracking import LookedAt


@dataclass(frozen=True, slots=True)
class Changed:
    """The changes that one call made. `overlapped`: true if another subtask ran at the same time and may have made
    some of them."""

    changes: tuple[Change, ...] = ()
    overlapped: bool = False


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call in progress. `mark`: the state of the workspace before the call. It is None if the call reports its
    changes itself."""

    subtask: str
    mark: Mark | None
    overlapped: bool = False


def nothing_runs(subtask: str) -> bool:
    """Report that no process of another subtask is running."""
    return False


@dataclass(slots=True, eq=False)
class CallChanges:
    """Attributes the changes in a task's workspace to the task's calls and subtasks.

    `looked` forgets the files that the task itself has changed. `others_run`: returns whether a process of another
    subtask is running. `snapshots`: true to keep the state before each subtask's first change, in which trials are
    run.
    """

    workspace: Workspace
    looked: LookedAt = field(default_factory=LookedAt)
    others_run: Callable[[str], bool] = nothing_runs
    runs: Callable[[], bool] = lambda: False
    snapshots: bool = False
    _open: set[OpenCall] = field(default_factory=set[OpenCall])
    _since: Mark | None = None
    _by_subtask: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    _before: dict[str, Workspace | None] = field(default_factory=dict[str, Workspace | None])
    _contents: dict[str, str] = field(default_factory=dict[str, str])
    """The digest of each file's content after the last call that changed the file."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def restore(self, changed: Iterable[tuple[str, str]]) -> None:
        """Record the changes that earlier processes of the task made, as pairs of subtask and printable path."""
        for subtask, path in changed:
            self._by_subtask.setdefault(subtask, set()).add(path)
            self._before.setdefault(subtask, None)

    async def begin(self, subtask: str, *, marked: bool = True) -> OpenCall:
        """Begin a call of a subtask. `marked`: if false, the call will report its changes itself."""
        async with self._turn:
            await self._keep_state_before(subtask)
            mark = None
            if marked:
                mark = self._since if self._since is not None and not self._open else await self.workspace.mark()
                self._since = None
        call = OpenCall(subtask, mark, self.others_run(subtask))
        for other in self._open:
            if other.subtask != subtask:
                call.overlapped = other.overlapped = True
        self._open.add(call)
        return call

    async def end(self, call: OpenCall, known: tuple[Change, ...] = ()) -> Changed:
        """End a call and return what it changed. `known`: the changes of a call that reports them itself."""
        try:
            changes = known if call.mark is None else await self.workspace.changes_since(call.mark)
        finally:
            self._open.discard(call)
        if call.mark is not None and self.runs() and not self._open:
            self._since = await self.workspace.mark()
        changes = tuple(change for change in changes if not self._is_as_before(change))
        self._contents.update({one.path: one.content_sha256 or "" for one in changes})
        self._by_subtask.setdefault(call.subtask, set()).update(change.path for change in changes)
        self.looked.forget(changes)
        certain = call.mark is None
        return Changed(
            changes, bool(changes) and not certain and (call.overlapped or self.others_run(call.subtask))
        )

    def _is_as_before(self, change: Change) -> bool:
        """Check whether a file was rewritten with the content that it had after the last call, as `git stash` may
        do."""
        same = change.content_sha256 is not None and self._contents.get(change.path) == change.content_sha256
        return same and change.kind is ChangeKind.OVERWRITTEN

    def abandon(self, call: OpenCall) -> None:
        """Forget a call that was cancelled."""
        self._open.discard(call)

    def places_of(self, subtask: str) -> frozenset[Path]:
        """Return the directories in which a subtask has changed something."""
        return frozenset(Path(path).parent for path in self._by_subtask.get(subtask, ()))

    def of_others_alone(self, subtask: str, path: str) -> bool:
        """Check whether only other subtasks, and not this one, changed this printable path."""
        if path in self._by_subtask.get(subtask, ()):
            return False
        return any(path in paths for one, paths in self._by_subtask.items() if one != subtask)

    def state_before(self, subtask: str) -> Workspace | None:
        """Return the workspace as it was before this subtask's first change. Return None if that state was not
        kept.

        If the subtask has changed nothing yet, this is the current workspace.
        """
        return self._before.get(subtask, self.workspace)

    async def _keep_state_before(self, subtask: str) -> None:
        if subtask in self._before:
            return
        self._before[subtask] = None
        if self.snapshots:
            try:
                self._before[subtask] = await self.workspace.fork(f"{subtask} before")
            except SandboxError:
                # The workspace is too large to be copied, so trials of this subtask are not possible.
                return

    async def discard_snapshots(self) -> None:
        """Delete the snapshots."""
        for subtask, kept in self._before.items():
            if kept is not None:
                await self.workspace.discard_fork(f"{subtask} before")
        self._before.clear()
