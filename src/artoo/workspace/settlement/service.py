"""Lock and settle one workspace, that is, review, apply, keep or discard its changes.

    with opened(directory, artoo_home, subject) as settlement:   # the workspace's lock is held
        found = settlement.review()
        settled = settlement.apply(found)                        # or keep(found), discard(), forget()

    apply ─► applied · partly (the rest is pending) · pending (a conflict)

This module is used at the end of a task, by `artoo apply`, by the team's approval, by the web UI, MCP, ACP and the
library. All functions block.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from artoo.contracts.changes import ApplyReport
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import PENDING_DAYS, ChangeClass, Settled, SettledState, counts_of, in_order_of_danger
from artoo.ports.workspace import Files
from artoo.sandbox.protocols import Backend
from artoo.sandbox.reading.mount_table import MountTable
from artoo.sandbox.remove_tree import remove_tree
from artoo.words.settling import joined, kept_in_memory, met, why_it_waits
from artoo.workspace import commit, git
from artoo.workspace.changes.change_set import ChangeSet, GitPart, GitQuestion, read_change_set
from artoo.workspace.directory import PATIENCE_SECONDS, WorkspaceDirectory, WorkspaceInUse, Workspaces
from artoo.workspace.files.layered import offline_files
from artoo.workspace.files.rooted import real_files
from artoo.workspace.settlement import finish
from artoo.workspace.settlement.finish import ActNote, Moment
from artoo.workspace.settlement.history import LISTED, SettledRecord
from artoo.workspace.settlement.inside import run_inside
from artoo.workspace.settlement.parts import ChosenPart, named, ordinary_part, part_of
from artoo.workspace.settlement.pending import DAY, PendingRecord, read_pending, write_pending

logger = logging.getLogger(__name__)

_NOTED = 50
"""The maximum number of silent changes in the note of an undo record. This is enough for a report and keeps every
record small."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The task whose change set is settled, and the texts about it in records and reports.

    `before_apply` is called with the paths before they are applied. It refuses by raising SandboxError. `task_id`:
    set only if the task is not that of the workspace. `since`, `expires_at`: when the change set became pending,
    and when it may be deleted (seconds since the epoch). `moment`: the point of time at which the changes are
    applied. `recorded`: true if the history gets a line about the apply. At the end of a task it does not, because
    the task's log already contains the apply.
    """

    task_id: str = ""
    since: float = field(default_factory=time.time)
    expires_at: float = field(default_factory=lambda: time.time() + PENDING_DAYS * DAY)
    request: str = ""
    language: str = "en"
    went_out: tuple[str, ...] = ()
    moment: Moment = "later"
    recorded: bool = True
    before_apply: Callable[[Sequence[str]], None] | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The settlement of a workspace whose lock the caller holds.

    `backend` is the sandbox backend for git commands on a repository of the workspace. If it is None, a backend is
    chosen when one is needed. `live`: the files of a sandbox that is still running (`--apply live`).
    """

    directory: WorkspaceDirectory
    artoo_home: Path
    subject: Subject = field(default_factory=Subject)
    backend: Backend | None = None
    live: Files | None = None

    @property
    def task_id(self) -> str:
        return self.subject.task_id or self.directory.task_id

    @property
    def pending(self) -> PendingRecord | None:
        """The record of the pending change set, or None if it is not pending."""
        return read_pending(self.directory)

    @contextmanager
    def files(self) -> Generator[tuple[Files, Files]]:
        """Yield the user's files and the task's version of them. Raises SandboxError."""
        if self.live is not None:
            yield real_files(), self.live
            return
        with closing(offline_files(self.directory)) as left:
            yield real_files(), left

    def review(self) -> ChangeSet:
        """Read all changes of the task and compare them with the user's present files. Raises SandboxError."""
        return read_change_set(self.directory, self.artoo_home, judge_git=self._judge_git)

    def apply(self, found: ChangeSet, paths: Collection[str] | None = None, *, by: str = PERSON) -> Settled:
        """Apply all changes without a conflict, or only `paths` (as the user wrote them) and their dependencies.

        The remaining changes are pending. If a conflict appears at the last moment, nothing is applied, and all
        changes are pending. `by`: the person or policy that approved, for the record. Raises SandboxError if the
        system refuses, or if a path is not in the change set. Then nothing was applied, and nothing new is pending.
        """
        part = part_of(found, None if paths is None else named(self.directory, paths))
        whole = len(part.paths) == len(found.effects) + len(found.git.classes) and not found.all_conflicts
        outcome = self._outcome(found, part.paths, whole=whole) if self.subject.moment == "end" else ""
        told = self._line("applied", by, sorted(part.paths), found.digest) if self.subject.recorded else None
        done = self._commit(found, part, self.subject.moment, outcome, whole=whole, told=told)
        # If the user changed a file between review and apply, all changes become pending again, with the reason.
        if not done.applied:
            kept = self.keep(found, met(done.conflicts, self.subject.language))
            return kept.model_copy(update={"conflicts": done.conflicts})
        return self.report(found, "applied") if whole else self._rest(found, part.paths)

    def apply_live(self, found: ChangeSet) -> tuple[str, ...]:
        """Apply the ordinary changes while the task continues (`--apply live`), and return their paths.

        If it raises SandboxError, nothing was applied.
        """
        paths = ordinary_part(found)
        if not paths:
            return ()
        outcome = self.report(_only(found, paths), "applied").model_dump_json()
        return self._commit(found, part_of(found, paths), "live", outcome).paths

    def keep(self, found: ChangeSet, *why: str) -> Settled:
        """Leave the change set pending, and write a record with all data that are needed to settle it later.

        `why`: reasons that are reported in addition to the missing approval.
        """
        record = self._pending(found, *why)
        reason = record.reason
        try:
            self.keep_record(record)
        except SandboxError as error:  # the disk has no room for the record, so its content is only in the report
            reason = joined(str(error), reason)
        return self.report(found, "pending").model_copy(update={"reason": reason, "expires_at": record.due})

    def keep_record(self, record: PendingRecord) -> None:
        """Write the record of a pending change set durably. Raises SandboxError when there is no room for it.

        The task's /tmp is emptied, because it is no longer needed and would use disk space while the changes are
        pending.
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

    def discard(self, *, by: str = PERSON) -> None:
        """Delete all changes of the task, and add a line to the history if `subject.recorded` is true.

        Raises SandboxError when the workspace cannot be deleted.
        """
        if not self.subject.recorded:
            self.forget()
            return
        pending = self.pending
        count = sum(each.count for each in pending.counts) if pending is not None else 0
        finish.discard(self.directory, self.artoo_home, self._line("discarded", by, count=count))

    def forget(self) -> None:
        """Delete the workspace, because it contains no change that is pending."""
        self.directory.remove()

    def report(self, found: ChangeSet, state: SettledState, most: int = LISTED) -> Settled:
        """Return the report of a change set. It lists at most `most` silent changes."""
        ordered = in_order_of_danger(found.all_classes)
        loud = [one for one in ordered if one.change_class is not ChangeClass.SILENT]
        silent = [one for one in ordered if one.change_class is ChangeClass.SILENT][:most]
        listed = (*(loud if most >= LISTED else loud[:most]), *silent)
        return Settled(
            state=state,
            counts=counts_of(ordered),
            changes=listed,
            unlisted=len(ordered) - len(listed),
            conflicts=found.all_conflicts,
            went_out=self.subject.went_out,
            digest=found.digest,
        )

    def _commit(
        self,
        found: ChangeSet,
        part: ChosenPart,
        moment: Moment,
        outcome: str,
        *,
        whole: bool = False,
        told: SettledRecord | None = None,
    ) -> ApplyReport:
        """Apply a part of the change set atomically, and do the steps that follow an apply. Raises SandboxError."""
        if self.subject.before_apply is not None:
            self.subject.before_apply(part.paths)
        note = ActNote(
            moment=moment,
            digest=found.digest,
            workspace=self.directory.record().created_at,
            whole=whole,
            paths=() if whole else part.paths,
            outcome=outcome,
            told=told,
        )
        report = commit.apply(
            part.effects,
            part.acts,
            task_id=self.directory.task_id,
            undo_home=self.artoo_home / "undo",
            note=note.model_dump_json(),
            share=whole,  # hard links to its files are safe, because the workspace is deleted afterwards
        )
        if report.applied:
            try:
                finish.finish_interrupted(self.directory, self.artoo_home)
            except (OSError, SandboxError) as error:
                # The apply took effect. The record stays open, and the next process that opens the workspace
                # finishes these steps.
                logger.warning("the workspace of task %s is not up to date yet: %s", self.task_id, error)
        return report

    def _line(
        self, what: str, by: str, paths: Sequence[str] = (), digest: str = "", count: int = 0
    ) -> SettledRecord:
        return SettledRecord(
            at=time.time(),
            task_id=self.task_id,
            what=what,
            by=by,
            request=self.subject.request,
            digest=digest,
            count=count or len(paths),
            paths=tuple(paths[:LISTED]),
        )

    def _rest(self, found: ChangeSet, applied: tuple[str, ...]) -> Settled:
        """Report a partial apply. The report is made even if the remaining changes cannot be reviewed or listed
        now."""
        try:
            rest, why = self.review(), ""
        except SandboxError as error:
            rest, why = ChangeSet(), str(error)
        if rest.empty and not why:
            self.forget()
            return self.report(found, "applied")
        return self.keep(rest, why).model_copy(update={"state": "partly", "applied": applied})

    def _outcome(self, found: ChangeSet, chosen: Sequence[str], *, whole: bool) -> str:
        """Return the report that the restarted task gives if this process dies right after the apply."""
        if whole:
            return self.report(found, "applied", most=_NOTED).model_dump_json()
        report = self.report(_only(found, chosen), "partly", most=_NOTED)
        return report.model_copy(update={"applied": tuple(chosen[:LISTED])}).model_dump_json()

    def _pending(self, found: ChangeSet, *why: str) -> PendingRecord:
        """Return the updated record of a pending change set. If a record exists already, its deadline and the time
        of its warning are kept."""
        subject = self.subject
        known = self.pending
        if known is None or known.cut_off:
            known = PendingRecord(task_id=self.task_id, since=subject.since, expires_at=subject.expires_at)
        in_memory = MountTable.read().in_memory(os.fsencode(self.directory.base.resolve()))
        lost = kept_in_memory(subject.language) if in_memory else ""
        return known.model_copy(
            update={
                "request": subject.request,
                "language": subject.language,
                "digest": found.digest,
                "counts": counts_of(found.all_classes),
                "reason": why_it_waits(found.all_conflicts, subject.language, *why, lost),
                "conflicts": len(found.all_conflicts),
                "went_out": subject.went_out,
            }
        )

    def _judge_git(self, question: GitQuestion) -> GitPart:
        if self.live is not None:  # commits are applied only at the end of the task, because git may be running now
            return GitPart(taken=frozenset(one.path for one in question.effects if b"/.git/" in one.path + b"/"))
        return git.judge(question, partial(run_inside, self.directory, self.artoo_home, self.backend))


def _only(found: ChangeSet, paths: Collection[str]) -> ChangeSet:
    """Return the change set with only the classes of these paths, for a report."""
    chosen = frozenset(paths)
    git_part = replace(found.git, classes=tuple(one for one in found.git.classes if one.path in chosen))
    return replace(found, classes=tuple(one for one in found.classes if one.path in chosen), git=git_part)


@contextmanager
def opened(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    subject: Subject | None = None,
    *,
    backend: Backend | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Generator[Settlement | None]:
    """Lock a workspace for settlement. Yields None if it does not exist, because another process has settled it.

    Raises WorkspaceInUse if another process holds the lock for longer than `patience` seconds, and SandboxError if
    an interrupted apply cannot be finished.
    """
    with directory.locked(patience):
        finish.finish_interrupted(directory, artoo_home)
        if directory.exists:
            yield Settlement(directory, artoo_home, subject or Subject(), backend)
        else:
            directory.remove()  # taking the lock has made the directory again
            yield None


def settled_already(task_id: str) -> SandboxError:
    """Return the error for a caller whose workspace was settled in the meantime."""
    return SandboxError(f"nothing of task {task_id} is pending any more: it was applied or discarded")


def recover_settlements(artoo_home: Path) -> None:
    """Finish interrupted applies, and delete the remains of deleted workspaces. Blocking.

    Call this after `commit.recover`. Workspaces that another process has locked are skipped. A workspace that
    cannot be recovered is logged and tried again at the next start; the others are not affected.
    """
    for directory in Workspaces(artoo_home).remembered():
        try:
            with directory.locked():
                finish.finish_interrupted(directory, artoo_home)
                if not directory.exists:
                    directory.remove()
        except WorkspaceInUse:
            continue
        except (SandboxError, OSError) as error:
            logger.warning("the workspace of task %s is left as it is: %s", directory.task_id, error)
