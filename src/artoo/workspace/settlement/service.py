"""The settlement of one workspace: review the changes, then apply them or a part of them, keep or discard them.

    with opened(directory, artoo_home, subject) as settlement:   # the workspace's lock is held
        found = settlement.review()
        settled = settlement.apply(found)                        # or keep(found), discard(), forget()

    apply ─► applied · partly (the rest is pending) · pending (a conflict)

The end of a task, `artoo apply`, the team's approval, the web UI, MCP, ACP and the library all use it. Everything
here blocks.
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
from artoo.contracts.settling import ChangeClass, Settled, SettledState, counts_of, in_order_of_danger
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
from artoo.workspace.settlement.parts import Part, named, ordinary_part, part_of
from artoo.workspace.settlement.pending import DAY, Keeping, PendingRecord, read_pending, write_pending

logger = logging.getLogger(__name__)

_NOTED = 50
"""Changes that the note of an undo record lists: enough for a report, small enough for every record."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The task whose change set is settled, as records and reports name it.

    `before_apply` is called with the paths before they are applied, and raises SandboxError to refuse. `task_id`:
    if it is another than its workspace's. `since`, `expires_at`: when it began to be pending and when it
    may be dropped (seconds since the epoch). `moment`: when it is applied. `recorded`: the history gets a line of
    what is applied; at the end of a task its log has it already.
    """

    task_id: str = ""
    since: float = field(default_factory=time.time)
    expires_at: float = field(default_factory=lambda: time.time() + Keeping().days * DAY)
    request: str = ""
    language: str = "en"
    went_out: tuple[str, ...] = ()
    moment: Moment = "later"
    recorded: bool = True
    before_apply: Callable[[Sequence[str]], None] | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The settlement of a workspace whose lock the caller holds.

    `backend` confines git when it reads a repository of the workspace; None: one is chosen when it is needed.
    `live` are the files of a sandbox that still runs (`--apply live`).
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
        """The record of when it began to be pending, if it is."""
        return read_pending(self.directory)

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
        return read_change_set(self.directory, self.artoo_home, judge_git=self._judge_git)

    def apply(self, found: ChangeSet, paths: Collection[str] | None = None, *, by: str = PERSON) -> Settled:
        """Apply everything that is in no conflict, or `paths` (as the user wrote them) with what they need.

        The rest is pending. With a conflict that appears at the last moment nothing is applied, and everything is
        pending. `by` is recorded: who approved it. Raises SandboxError when the system refuses, or a path is not in
        the change set; then nothing was applied, and nothing new is pending.
        """
        part = part_of(found, None if paths is None else named(self.directory, paths))
        whole = len(part.paths) == len(found.effects) + len(found.git.classes) and not found.all_conflicts
        outcome = self._outcome(found, part.paths, whole=whole) if self.subject.moment == "end" else ""
        told = self._line("applied", by, sorted(part.paths), found.digest) if self.subject.recorded else None
        done = self._commit(found, part, self.subject.moment, outcome, whole=whole, told=told)
        # The user saved a file between review and apply: everything is pending again, with the reason.
        if not done.applied:
            kept = self.keep(found, met(done.conflicts, self.subject.language))
            return kept.model_copy(update={"conflicts": done.conflicts})
        return self.report(found, "applied") if whole else self._rest(found, part.paths)

    def apply_live(self, found: ChangeSet) -> tuple[str, ...]:
        """Apply what is ordinary while the task goes on (`--apply live`), and return its paths.

        Raises SandboxError; then nothing was applied.
        """
        paths = ordinary_part(found)
        if not paths:
            return ()
        outcome = self.report(_only(found, paths), "applied").model_dump_json()
        return self._commit(found, part_of(found, paths), "live", outcome).paths

    def keep(self, found: ChangeSet, *why: str) -> Settled:
        """Leave the change set pending, with a record of everything that is needed to settle it later.

        `why` are reasons besides the missing approval.
        """
        record = self._pending(found, *why)
        reason = record.reason
        try:
            self.keep_record(record)
        except SandboxError as error:  # no room for the record: the report says what it would have said
            reason = joined(str(error), reason)
        return self.report(found, "pending").model_copy(update={"reason": reason, "expires_at": record.due})

    def keep_record(self, record: PendingRecord) -> None:
        """Write the record of a pending change set durably. Raises SandboxError when there is no room for it.

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

    def discard(self, *, by: str = PERSON) -> None:
        """Delete everything that the task changed, and record it if the history is to have it.

        Raises SandboxError when the workspace cannot be deleted.
        """
        if not self.subject.recorded:
            self.forget()
            return
        pending = self.pending
        count = sum(each.count for each in pending.counts) if pending is not None else 0
        finish.discard(self.directory, self.artoo_home, self._line("discarded", by, count=count))

    def forget(self) -> None:
        """Delete the workspace, because nothing of it is pending."""
        self.directory.remove()

    def report(self, found: ChangeSet, state: SettledState, most: int = LISTED) -> Settled:
        """Return the report of a change set, with at most `most` silent changes in it."""
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
        part: Part,
        moment: Moment,
        outcome: str,
        *,
        whole: bool = False,
        told: SettledRecord | None = None,
    ) -> ApplyReport:
        """Apply a part of the change set, all or nothing, and do what follows. Raises SandboxError."""
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
            share=whole,  # the workspace is deleted then
        )
        if report.applied:
            try:
                finish.finish_interrupted(self.directory, self.artoo_home)
            except (OSError, SandboxError) as error:
                # It did take effect. The record stays open; the next process that opens the workspace finishes it.
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
        """Report a part that was applied, also if the rest can be neither reviewed nor listed now."""
        try:
            rest, why = self.review(), ""
        except SandboxError as error:
            rest, why = ChangeSet(), str(error)
        if rest.empty and not why:
            self.forget()
            return self.report(found, "applied")
        return self.keep(rest, why).model_copy(update={"state": "partly", "applied": applied})

    def _outcome(self, found: ChangeSet, chosen: Sequence[str], *, whole: bool) -> str:
        """Return the report that the next life of the task gives if this process dies right after the apply."""
        if whole:
            return self.report(found, "applied", most=_NOTED).model_dump_json()
        report = self.report(_only(found, chosen), "partly", most=_NOTED)
        return report.model_copy(update={"applied": tuple(chosen[:LISTED])}).model_dump_json()

    def _pending(self, found: ChangeSet, *why: str) -> PendingRecord:
        """Return the record: that of before, if there is one, so that its deadline and its notice stay."""
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
        if self.live is not None:  # commits arrive at the end of the task; git may be at work right now
            return GitPart(taken=frozenset(one.path for one in question.effects if b"/.git/" in one.path + b"/"))
        return git.judge(question, partial(run_inside, self.directory, self.artoo_home, self.backend))


def _only(found: ChangeSet, paths: Collection[str]) -> ChangeSet:
    """Return the change set with the classes of these paths alone, for a report."""
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
    """Hold a workspace for settlement; None if it is gone, because another process has settled it.

    Raises WorkspaceInUse if another process holds it for longer than `patience` seconds, and SandboxError if an
    interrupted apply cannot be ended.
    """
    with directory.locked(patience):
        finish.finish_interrupted(directory, artoo_home)
        if directory.exists:
            yield Settlement(directory, artoo_home, subject or Subject(), backend)
        else:
            directory.remove()  # taking the lock has made the directory again
            yield None


def settled_already(task_id: str) -> SandboxError:
    """Return the error for a caller that comes too late."""
    return SandboxError(f"nothing of task {task_id} is pending any more: it was applied or discarded")


def recover_settlements(artoo_home: Path) -> None:
    """Finish interrupted applies, and delete what is left of deleted workspaces. Blocking.

    Call it after `commit.recover`. Workspaces that a process holds are left alone; one that cannot be put in order
    is reported and tried again at the next start, because it concerns no other.
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
