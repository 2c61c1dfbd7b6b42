"""The settlement of one workspace: review the changes, then apply them or a part of them, keep or discard them.

    with opened(directory, artoo_home, backend) as settlement:   # the workspace's lock is held
        found = settlement.review()
        settlement.apply(found, digest=found.digest)             # or keep(record), discard(record), forget()

The end of a task, `artoo apply`, the team's approval, the web UI, MCP, ACP and the library all use it. Everything
here blocks.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Collection, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from artoo.contracts.changes import ApplyReport
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Files
from artoo.sandbox.protocols import Backend
from artoo.sandbox.reading.mount_table import MountTable
from artoo.workspace import commit, git
from artoo.workspace.changes.change_set import ChangeSet, GitPart, GitQuestion, read_change_set
from artoo.workspace.directory import PATIENCE_SECONDS, WorkspaceDirectory, WorkspaceInUse, Workspaces
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.rooted import real_files
from artoo.workspace.fs.remove_tree import remove_tree
from artoo.workspace.settlement import mark
from artoo.workspace.settlement.history import SettledRecord
from artoo.workspace.settlement.inside import run_inside
from artoo.workspace.settlement.mark import Mark
from artoo.workspace.settlement.notes import ActNote, Moment
from artoo.workspace.settlement.parts import part_of
from artoo.workspace.settlement.pending import PendingRecord, forget_pending, read_pending, write_pending

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply. `whole`: everything took effect and the workspace is gone."""

    report: ApplyReport
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """A workspace whose lock the caller holds.

    `backend` confines git when it reads a repository of the workspace; None: one is chosen when it is needed.
    `live` are the files of a sandbox that still runs (`--apply live`).
    """

    directory: WorkspaceDirectory
    artoo_home: Path
    backend: Backend | None = None
    live: Files | None = None

    @property
    def pending(self) -> PendingRecord | None:
        """The record of when it began to be pending, if it is."""
        return read_pending(self.directory)

    @property
    def in_memory(self) -> bool:
        """True if a reboot deletes the workspace, because artoo's home is in memory."""
        return MountTable.read().in_memory(os.fsencode(self.directory.base.resolve()))

    @contextmanager
    def files(self) -> Generator[tuple[Files, Files]]:
        """Yield the user's files, and the files as the task left them. Raises SandboxError."""
        if self.live is not None:
            yield real_files(), self.live
            return
        with closing(offline_files(self.directory)) as left:
            yield real_files(), left

    def review(self) -> ChangeSet:
        """Read everything that the task changes against the user's files now. Raises SandboxError."""
        return read_change_set(self.directory, self.artoo_home, judge_git=self._judge_git, after=self.live)

    def apply(
        self,
        change_set: ChangeSet,
        *,
        digest: str,
        paths: Collection[str] | None = None,
        moment: Moment = "later",
        outcome: str = "",
        told: SettledRecord | None = None,
    ) -> Applied:
        """Apply the change set, or `paths` of it with what they need: all of that, or nothing.

        `digest` is that of the change set that was approved. `paths` are printable; a directory stands for all in
        it. `moment` and `outcome` go into the note of the undo record; `told` is recorded once the commit took
        effect. A live apply leaves the workspace as it is. Raises SandboxError if another change set was approved,
        a path is not in it, or the system refuses; then nothing has changed.
        """
        if change_set.digest != digest:
            raise SandboxError("the changes are no longer what was approved: look at them again")
        part = part_of(change_set, paths)
        whole = (
            moment != "live"
            and len(part.paths) == len(change_set.effects) + len(change_set.git.classes)
            and not change_set.all_conflicts
        )
        note = ActNote(settlement=uuid.uuid4().hex, moment=moment, digest=digest, outcome=outcome)
        begun = Mark(settlement=note.settlement, whole=whole, paths=part.paths, told=told)
        try:
            mark.write_mark(self.directory, begun)
        except OSError as error:
            raise SandboxError(f"the changes could not be applied ({error}); nothing was changed") from error
        try:
            report = commit.apply(
                part.effects,
                part.acts,
                task_id=self.directory.task_id,
                undo_home=self.artoo_home / "undo",
                note=note.model_dump_json(),
                share=whole,  # the workspace is deleted then
            )
        except SandboxError:
            self._end_failed()
            raise
        if not report.applied:
            mark.forget_mark(self.directory)
            return Applied(report)
        try:
            mark.finish(self.directory, self.artoo_home, begun, report.transaction or "")
        except (OSError, SandboxError) as error:
            # It did take effect. The mark stays, and the next process that opens the workspace finishes it.
            logger.warning("the workspace of task %s is not up to date yet: %s", self.directory.task_id, error)
        return Applied(report, whole)

    def discard(self, settled: SettledRecord) -> None:
        """Delete the workspace and record it. Raises OSError when there is no room even for that record."""
        mark.discard(self.directory, self.artoo_home, settled)

    def keep(self, record: PendingRecord) -> None:
        """Leave the change set pending, durably. Raises SandboxError when there is no room for the record.

        The task's /tmp is emptied: nothing needs it any more, and it would take room for as long as changes wait.
        """
        try:
            remove_tree(self.directory.scratch)
            self.directory.make_scratch()
            write_pending(self.directory, record)
        except OSError as error:
            raise SandboxError(
                f"what the task changed is retained in {self.directory.base}, but cannot be listed ({error}); free "
                "space"
            ) from error

    def go_on(self) -> None:
        """Forget that the change set is pending, because the task goes on in its workspace."""
        forget_pending(self.directory)

    def forget(self) -> None:
        """Delete the workspace, because nothing of it is pending."""
        self.directory.remove()

    def _judge_git(self, question: GitQuestion) -> GitPart:
        if self.live is not None:  # commits arrive at the end of the task; git may be at work right now
            return GitPart(taken=frozenset(one.path for one in question.effects if b"/.git/" in one.path + b"/"))
        return git.judge(question, partial(run_inside, self.directory, self.artoo_home, self.backend))

    def _end_failed(self) -> None:
        """Delete the mark of a commit that did not take effect; if that fails, the next process does it."""
        with suppress(OSError, SandboxError):
            mark.end_interrupted(self.directory, self.artoo_home)


@contextmanager
def opened(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    backend: Backend | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Generator[Settlement | None]:
    """Hold a workspace for settlement; None if it is gone, because another process has settled it.

    Raises WorkspaceInUse if another process holds it for longer than `patience` seconds, and SandboxError if an
    interrupted apply cannot be ended.
    """
    with directory.locked(patience):
        mark.end_interrupted(directory, artoo_home)
        if directory.exists:
            yield Settlement(directory, artoo_home, backend)
        else:
            directory.remove()  # taking the lock has made the directory again
            yield None


def settled_already(task_id: str) -> SandboxError:
    """Return the error for a caller that comes too late."""
    return SandboxError(f"nothing of task {task_id} is pending any more: it was applied or discarded")


def recover_settlements(artoo_home: Path) -> None:
    """End interrupted applies and discards, and delete what is left of deleted workspaces. Blocking.

    Call it after `commit.recover`. Workspaces that a process holds are left alone; one that cannot be put in order
    is reported and tried again at the next start, because it concerns no other.
    """
    for directory in Workspaces(artoo_home).remembered():
        try:
            with directory.locked():
                mark.end_interrupted(directory, artoo_home)
                if not directory.exists:
                    directory.remove()
        except WorkspaceInUse:
            continue
        except (SandboxError, OSError) as error:
            logger.warning("the workspace of task %s is left as it is: %s", directory.task_id, error)
