"""Show, apply or discard one pending change set, in any process after the task's end.

`artoo diff|apply|discard` and the library use this module.

    pendings(config) ─► Pending ─► diff()      show the changes against the present files, with conflicts
                               ├─► apply()     apply all changes, or only the named paths
                               └─► discard()   delete the changes without applying them

This works in any process, also days later. Each call locks the workspace. If the process is killed, the changes
stay pending and valid.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from artoo.contracts.changes import Conflict
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassCount, Review, Settled
from artoo.runtime.config.extensions import Hooks
from artoo.tasklog.reader import TaskSummary
from artoo.tools.settlement.review import review_of
from artoo.words.outcome import resumable
from artoo.words.settling import met
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.history import SettledRecord, note_settled
from artoo.workspace.settlement.parts import named
from artoo.workspace.settlement.service import Settlement, Subject, opened, settled_already


@dataclass(frozen=True, slots=True)
class Pending:
    """One task's pending changes. Times are seconds since the epoch (UTC).

    `reason`: why the changes are pending. `cut_off`: true if the task was interrupted before its end. `on_board`:
    true if they belong to a task of the team. A review of the team then applies or discards them. If `cut_off` is
    true too, the work was not submitted yet. `stands`: the state of the task on the board. It is empty if it was
    not looked up. `forsaken`: true if no agent will continue or review the task, so that the user may apply or
    discard its changes. `outdated`: true if another version of artoo made them, so that they can only be discarded.
    `workspace`: the id of the workspace, if it differs from the task's. `counts` and `conflicts` (the paths in
    conflict, which are not in `counts`) are those of the time when the changes became pending. `diff` returns the
    present state.
    """

    task_id: str
    since: float
    expires_at: float
    request: str = ""
    language: str = "en"
    reason: str = ""
    counts: tuple[ClassCount, ...] = ()
    conflicts: int = 0
    went_out: tuple[str, ...] = ()
    warned: bool = False
    cut_off: bool = False
    on_board: bool = False
    stands: str = ""
    forsaken: bool = False
    outdated: bool = False
    workspace: str = ""
    _home: Path = field(default=Path(), repr=False)
    _hooks: Hooks = field(default_factory=Hooks.model_construct, repr=False)

    @property
    def resumable(self) -> bool:
        """Return whether the task was interrupted and can be resumed. If so, its changes must not be applied."""
        # A single command (`artoo sandbox`) has no log from which it could be resumed, so its changes can be
        # applied.
        return self.cut_off and bool(self.request) and not self.on_board

    @property
    def only_conflicts(self) -> bool:
        """Return whether nothing can be applied, because the user has changed all of the paths too."""
        return self.conflicts > 0 and not self.counts

    async def diff(self) -> Review:
        """Return all changes compared with the user's present files, the most dangerous first, and the conflicts.

        Raises SandboxError if another process holds the workspace, or the changes were applied or discarded
        already.
        """
        return await asyncio.to_thread(self._diff)

    async def apply(
        self,
        paths: Collection[str] | None = None,
        *,
        digest: str | None = None,
        rest: bool = False,
        by: str = PERSON,
    ) -> Settled:
        """Apply all changes, or only `paths` (printable, relative to the project; a directory includes all in it).

        `by`: who approved the changes, which is recorded. `digest`: the digest of the change set that the user was
        shown (`digest()`). If the change set is a different one now, it is refused. If there are conflicts, nothing
        is applied, unless paths are named or `rest` is true. `rest` applies everything that has no conflict. The
        state of the result is `applied`, `partly` (the other changes are still pending) or `pending` (nothing was
        applied; see `reason` and `conflicts`). Raises SandboxError in these cases: those of `diff`; the system
        refuses (nothing is applied then); the list is empty; a path is not part of the changes; the task can be
        resumed.
        """
        return await to_its_end(lambda: self._apply(paths, digest, rest, by))

    async def discard(self, *, by: str = PERSON) -> Settled:
        """Delete the changes. No file of the user is modified. Sent data cannot be recalled. Raises
        SandboxError."""
        return await to_its_end(lambda: self._discard(by))

    async def named(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the paths in the form that `diff` uses. Relative paths start at the task's project.

        Raises SandboxError for an empty list, an empty path, or the project itself.
        """
        return await asyncio.to_thread(lambda: named(self._directory(), paths))

    async def digest(self) -> str:
        """Return the digest of the change set as it is now. Raises SandboxError as `diff` does."""
        return await asyncio.to_thread(self._digest)

    # --- blocking -----------------------------------------------------------------------------------------------

    def _directory(self) -> WorkspaceDirectory:
        if self.outdated:
            Workspaces(self._home).require_readable(self.task_id)
        workspaces = Workspaces(self._home)
        directory = workspaces.find(self.task_id) or (workspaces.find(self.workspace) if self.workspace else None)
        if directory is None:
            raise settled_already(self.task_id)
        return directory

    @contextmanager
    def _opened(self) -> Generator[Settlement]:
        subject = Subject(
            task_id=self.task_id,
            since=self.since,
            expires_at=self.expires_at,
            request=self.request,
            language=self.language,
            went_out=self.went_out,
        )
        directory = self._directory()
        subject = replace(subject, before_apply=partial(self._before_apply, directory))
        with opened(directory, self._home, subject) as settlement:
            # Another process applied or discarded the changes while this one waited for the lock.
            if settlement is None:
                raise settled_already(self.task_id)
            yield settlement

    def _before_apply(self, directory: WorkspaceDirectory, paths: Sequence[str]) -> None:
        """Run the user's hooks, and the project's if they are approved. Raises SandboxError if a hook refuses."""
        project = directory.record().roots.project
        if not self._hooks.before_apply and not os.path.lexists(project / ".artoo" / "hooks.yaml"):
            return
        from artoo.runtime.extensions.hooks import TaskHooks

        hooks = TaskHooks(self._hooks, self._home, project, self.task_id, self.request)
        hooks.adopt()
        hooks.before_apply(paths)

    def _diff(self) -> Review:
        with self._opened() as settlement:
            found = settlement.review()
            with settlement.files() as (before, after):
                return review_of(found, self.task_id, before, after, went_out=self.went_out)

    def _digest(self) -> str:
        self._take_attempt()
        with self._opened() as settlement:
            return settlement.review().digest

    def _apply(self, paths: Collection[str] | None, digest: str | None, rest: bool, by: str) -> Settled:
        self._require_settleable()
        self._take_attempt()
        with self._opened() as settlement:
            chosen = None if paths is None else named(settlement.directory, paths)
            found = settlement.review()
            if digest is not None and digest != found.digest:
                raise SandboxError("it is no longer what was shown: look at it again (artoo diff)")
            if found.empty:
                settlement.forget()
                return settlement.report(found, "applied")
            conflicts = found.all_conflicts
            if conflicts and (not found.all_classes or (chosen is None and not rest)):
                return self._refused(settlement, found, conflicts)
            if in_the_way := tuple(one for one in conflicts if one.path in (chosen or ())):
                return self._refused(settlement, found, in_the_way)
            return settlement.apply(found, paths, by=by)

    def _require_settleable(self) -> None:
        """Raise SandboxError if the task can be resumed, or if the team is still working on it."""
        Workspaces(self._home).require_readable(self.task_id)
        if self.cut_off and self.on_board and not self.forsaken:
            raise SandboxError(
                f"task {self.task_id} is the team's, and it was not handed in: artoo serve continues it,"
                f" artoo task show {self.task_id} shows its state"
            )
        if self.resumable:
            raise SandboxError(
                f"task {self.task_id} was interrupted: artoo resume {self.task_id} goes on with it,"
                f" artoo discard {self.task_id} deletes its changes"
            )

    def _refused(self, settlement: Settlement, found: ChangeSet, conflicts: tuple[Conflict, ...]) -> Settled:
        reason = met(conflicts, self.language)
        known = {"conflicts": conflicts, "reason": reason, "expires_at": self.expires_at}
        return settlement.report(found, "pending").model_copy(update=known)

    def _discard(self, by: str) -> Settled:
        if self.outdated:
            self._discard_outdated(by)
        else:
            with self._opened() as settlement:
                settlement.discard(by=by)
        return Settled(state="discarded", counts=self.counts, went_out=self.went_out)

    def _take_attempt(self) -> None:
        """If the task is forsaken, make the agent's attempt the submitted work, because the user takes it over."""
        if self.forsaken:
            # Imported here, because tasks outside of a team do not need it.
            from artoo.runtime.changes.submissions import Submissions

            Submissions(self._home).adopt_attempt(self.task_id)

    def _discard_outdated(self, by: str) -> None:
        line = SettledRecord(at=time.time(), task_id=self.task_id, what="discarded", by=by, request=self.request)
        for one in Workspaces(self._home).outdated():
            if one.task_id == self.task_id:
                one.discard()
        note_settled(self._home, line)


def has_ended(told: TaskSummary | None) -> bool:
    """Return whether the task's log ends with a result from which the task cannot be resumed."""
    return told is not None and told.result is not None and not resumable(told.result)


_T = TypeVar("_T")


async def to_its_end(work: Callable[[], _T]) -> _T:
    """Return the result of `work`. If the caller is cancelled, wait until the work has ended, then raise
    CancelledError."""
    # This is a plain thread and no asyncio task. An event loop that ends cancels its tasks, and then nothing would
    # wait for the work.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
