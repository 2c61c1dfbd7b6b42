"""Apply effects and git operations atomically, undo them, recover after crashes, and delete old records."""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artoo.contracts.changes import ApplyReport, Conflict, RecoveryReport, UndoableTask, UndoReport
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.dirfd_ops import sync
from artoo.workspace.commit.execute import ChangedMeanwhile, execute, to_sync
from artoo.workspace.commit.manifest import (
    MANIFEST,
    NOTE,
    STAGING,
    UNDOING,
    Manifest,
    Record,
    Step,
    all_records,
    exclusive,
    records_of,
)
from artoo.workspace.commit.prepare import (
    check,
    choose_slots,
    clean_slots,
    is_beside,
    prepare,
    refuse_unsupported,
    to_sync_first,
)
from artoo.workspace.commit.restore import carry_out, judge, roll_back, settle_rolled_back
from artoo.workspace.fs.names import printable
from artoo.workspace.git.act import GitAct, forget, move, move_back


def apply(
    effects: Sequence[Effect],
    git_acts: Sequence[GitAct] = (),
    *,
    task_id: str,
    undo_home: Path,
    note: str = "",
    share: bool = False,
) -> ApplyReport:
    """Apply effects and git operations atomically. If there are conflicts, nothing is applied. Blocking.

    The new versions are copied from the effects' sources, which remain unchanged. `share`: true if the caller
    deletes the sources after a success, so that they may be hard-linked instead of copied. `note` is stored with
    the record.

    Raises SandboxError if the system refuses. In that case everything is restored, now or at the next start.
    """
    refuse_unsupported(effects)
    with exclusive(undo_home):
        try:
            for record in records_of(undo_home, task_id):
                if not record.done:
                    recover_record(record)
            steps, conflicts = check(effects)
            if conflicts:
                return ApplyReport(applied=False, conflicts=tuple(conflicts))
            record = Record.begin(undo_home, task_id)
            manifest = _commit(record, effects, steps, git_acts, note, share=share)
            conflicts = _carry_out(record, manifest)
        except OSError as error:
            raise SandboxError(f"the changes could not be applied ({error}); everything is as before") from error
    if conflicts:
        return ApplyReport(applied=False, conflicts=tuple(conflicts))
    return ApplyReport(applied=True, paths=tuple(one.shown for one in effects), transaction=record.name)


def _commit(
    record: Record,
    effects: Sequence[Effect],
    steps: Sequence[Step],
    git_acts: Sequence[GitAct],
    note: str,
    *,
    share: bool,
) -> Manifest:
    """Prepare slots and before-images, and write the manifest. After OSError or SandboxError, the slots and images
    are removed."""
    try:
        # A slot next to its target is recorded before it is made, so that recovery can remove it.
        choose_slots(record, steps)
        if next_to := tuple(step for step in steps if is_beside(record, step)):
            record.write(STAGING, _manifest(record, next_to, ()))
        prepare(record, steps, effects, share=share)
        (record.place / NOTE).write_text(note, "utf-8")
        manifest = _manifest(record, steps, git_acts)
        record.write(MANIFEST, manifest, durably=False)
    except BaseException:
        if not record.committed:
            with suppress(OSError, SandboxError):  # if the disk fails, the next start removes the record
                clean_up(record)
        raise
    return manifest


def _manifest(record: Record, steps: Sequence[Step], git_acts: Sequence[GitAct]) -> Manifest:
    return Manifest(task_id=record.task_id, created_at=time.time(), steps=tuple(steps), git=tuple(git_acts))


def _carry_out(record: Record, manifest: Manifest) -> Sequence[Conflict]:
    """Replace the paths, move git's refs, and mark the record as done. Returns conflicts if they caused a
    roll-back.

    Raises OSError or SandboxError if it was rolled back for another reason, now or at the next start.
    """
    try:
        sync(to_sync_first(record, manifest.steps))
        execute(manifest.steps)
        for act in manifest.git:
            move(act)
        sync(to_sync(manifest.steps))
        record.mark_done()
    except (OSError, SandboxError) as error:
        conflicts, left = roll_back(record, manifest)
        changed = error.filename if isinstance(error, ChangedMeanwhile) else None
        settle_rolled_back(record, manifest, [step for step in left if step.path != changed])
        if changed is None:
            raise
        first = Conflict(path=str(changed), reason="it was changed at this moment; your version stays")
        return [first, *(one for one in conflicts if one.path != first.path)]
    with suppress(OSError, SandboxError):  # the apply has taken effect, and the next start cleans up
        clean_up(record)
    return ()


# --- undo and recovery ------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

Verdicts = dict[str, str | None]
"""The result for each printable path. It is None if the path was restored, or else the reason why it was not."""


def undo(artoo_home: Path, task_id: str) -> UndoReport:
    """Restore the paths that the task changed, its newest apply first. Blocking. The call may be repeated after a
    crash.

    Paths that are not restored can be undone later. Raises SandboxError if there is nothing to undo, or the system
    refuses.
    """
    undo_home = artoo_home / "undo"
    restored: dict[str, None] = {}
    refused: dict[str, str] = {}
    with exclusive(undo_home):
        records = [one for one in records_of(undo_home, task_id) if one.done]
        if not records:
            raise SandboxError(f"nothing is kept of task {task_id}; `artoo undo --list` shows what can be undone")
        # The newest record comes first, because an older one holds the version that the newer one replaced.
        for record in reversed(records):
            for path, reason in _undo_record(record).items():
                if reason is None:
                    restored[path] = None
                elif path not in refused:
                    refused[path] = ("only its last change was undone: " if path in restored else "") + reason
    return UndoReport(
        task_id=task_id,
        restored=tuple(path for path in restored if path not in refused),
        refused=tuple(Conflict(path=path, reason=reason) for path, reason in refused.items()),
    )


def _undo_record(record: Record) -> Verdicts:
    """Undo one apply as far as possible. Raises SandboxError."""
    try:
        clean_up(record)
        verdicts = _complete_undo(record) if record.has(UNDOING) else {}
        if record.committed:
            verdicts |= _begin_undo(record)
            verdicts |= _complete_undo(record)
    except OSError as error:
        raise SandboxError(f"not everything could be restored: {error}; fix that and repeat the undo") from error
    return verdicts


def _begin_undo(record: Record) -> Verdicts:
    """Decide which paths are restored, and record them, so that an interrupted undo can be completed.

    Returns the paths that are not restored, with reasons. Raises OSError, SandboxError.
    """
    manifest = record.manifest()
    kept = [(act, conflicts) for act in reversed(manifest.git) if (conflicts := move_back(act))]
    refused = {one.path: one.reason for _, conflicts in kept for one in conflicts}
    refused |= _held_by_git([act for act, _ in kept], manifest.steps)
    steps = [step for step in manifest.steps if step.path not in refused]
    choose_slots(record, steps)
    plan = judge(record, steps, lenient=False)
    known = {step.path for step in steps}
    chosen = [step for step in steps if step.path not in plan.refused]
    chosen += [step for step in plan.back if step.path not in known]  # directories that must be made writable
    record.write(UNDOING, manifest.model_copy(update={"steps": tuple(chosen)}))
    return {**refused, **plan.refused}


def _complete_undo(record: Record) -> Verdicts:
    """Restore the paths that an interrupted undo recorded, and keep the other steps in the record. Raises OSError,
    SandboxError."""
    manifest, begun = record.manifest(), record.manifest(UNDOING)
    acts = {act.git_dir: move_back(act) for act in reversed(manifest.git)}
    plan = judge(record, begun.steps, lenient=True)
    carry_out(record, begun.steps, plan)
    clean_slots(record, (step for step in begun.steps if step.path not in plan.refused))
    verdicts: Verdicts = {step.path: plan.refused.get(step.path) for step in begun.steps if not step.opens}
    verdicts |= {path: None for act in manifest.git for path in act.paths if not acts[act.git_dir]}
    left = tuple(one for one in manifest.steps if verdicts.get(one.path, "") is not None and not one.opens)
    git = tuple(act for act in manifest.git if acts[act.git_dir])
    if left or git:
        record.keep_only(manifest.model_copy(update={"steps": left, "git": git}))
    else:
        record.forget()
    return verdicts


def _held_by_git(acts: Iterable[GitAct], steps: Iterable[Step]) -> dict[str, str]:
    """Return the paths in the checkout of repositories that are not restored, each with the reason."""
    needs = [(need, act.git_dir) for act in acts for need in act.needs]
    return {
        step.path: f"it belongs to {repository}, which stays as it is"
        for step in steps
        for need, repository in needs
        if step.path == need or step.path.startswith(need + "/")
    }


def recover(artoo_home: Path) -> RecoveryReport:
    """Roll back interrupted applies, complete interrupted undos, and remove leftover files. Blocking; may be
    repeated.

    A record that cannot be recovered now is reported and tried again later, and does not affect other records.
    Raises SandboxError when the lock cannot be acquired.
    """
    undo_home = artoo_home / "undo"
    names: dict[str, list[str]] = {"undone": [], "finished": []}
    conflicts: list[Conflict] = []
    if undo_home.is_dir():
        with exclusive(undo_home):
            # the newest record first, because it was the last to change its paths
            for record in reversed(all_records(undo_home)):
                try:
                    what, found = recover_record(record)
                except (SandboxError, OSError) as error:
                    logger.warning("%s (%s); other tasks are not concerned", error, record.name)
                    what, found = "", [Conflict(path=printable(record.place), reason=str(error))]
                conflicts += found
                if what:
                    names[what].append(record.name)
    return RecoveryReport(
        finished=tuple(names["finished"]), undone=tuple(names["undone"]), conflicts=tuple(conflicts)
    )


def recover_record(record: Record) -> tuple[Literal["undone", "finished", ""], Sequence[Conflict]]:
    """Recover one record, that is, roll back its apply or complete its undo. The caller holds the lock.

    Raises SandboxError, OSError.
    """
    if record.committed and not record.done:
        manifest = record.manifest()
        conflicts, left = roll_back(record, manifest)
        settle_rolled_back(record, manifest, left)
        return "undone", conflicts
    if record.committed and record.has(UNDOING):
        verdicts = _complete_undo(record)
        return "finished", [Conflict(path=path, reason=why) for path, why in verdicts.items() if why is not None]
    clean_up(record)
    return "", ()


def clean_up(record: Record) -> None:
    """Remove leftover slots, and the record if it was never committed. Raises OSError, SandboxError."""
    if record.has(STAGING):
        clean_slots(record, record.manifest(STAGING).steps)
        record.unmark(STAGING)
    if not record.committed:
        record.forget()


# --- how long records are kept ----------------------------------------------------------------------------------


_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Keep:
    """The limits up to which before-images are kept. The limit that is reached first applies."""

    days: float
    total_bytes: int


def undoable(artoo_home: Path, keep: Keep) -> tuple[UndoableTask, ...]:
    """Return the tasks that can be undone, each with the time until which it can, oldest first. Blocking."""
    grouped: dict[str, list[tuple[Manifest, int]]] = defaultdict(list)
    for record in all_records(artoo_home / "undo"):
        with suppress(SandboxError, FileNotFoundError):  # the record is damaged, or another process is undoing it
            if record.done:
                found = record.manifest(), _bytes_kept(record)
                grouped[record.task_id].append(found)
    found = [_summary(task_id, kept, keep) for task_id, kept in grouped.items()]
    return tuple(sorted(found, key=lambda one: one.last_at))


def _summary(task_id: str, found: list[tuple[Manifest, int]], keep: Keep) -> UndoableTask:
    last = max(manifest.created_at for manifest, _ in found)
    return UndoableTask(
        task_id=task_id,
        transactions=len(found),
        paths=len({step.path for manifest, _ in found for step in manifest.steps if not step.opens}),
        bytes_kept=sum(size for _, size in found),
        last_at=last,
        until=last + keep.days * _DAY_SECONDS,
    )


def unreadable(artoo_home: Path) -> tuple[str, ...]:
    """Return, for each record that cannot be undone, the reason. Blocking."""
    found: list[str] = []
    for record in all_records(artoo_home / "undo"):
        if record.committed:
            problem = record.problem()
            # no reason means that the record was undone at this moment
            if problem is not None and record.place.exists():
                found.append(f"task {record.task_id}: {problem}")
    return tuple(found)


def prune(artoo_home: Path, keep: Keep, now: float | None = None) -> int:
    """Delete the records that are too old. While too many bytes are kept, also delete the oldest records. Returns
    their number. Blocking.

    Records of an interrupted apply or undo are never deleted. Damaged records are deleted only when they are too
    old.
    """
    now = time.time() if now is None else now
    undo_home = artoo_home / "undo"
    if not undo_home.is_dir():
        return 0
    removed = 0
    with exclusive(undo_home):
        kept = [(_made_at(one), one, _bytes_kept(one)) for one in all_records(undo_home) if _may_go(one)]
        total = sum(size for _, _, size in kept)
        for made_at, record, size in sorted(kept, key=lambda one: one[0]):
            due = made_at < now - keep.days * _DAY_SECONDS
            too_much = total > keep.total_bytes and record.problem() is None
            if (due or too_much) and _forget(record):
                total -= size
                removed += 1
        for task in undo_home.iterdir():
            if task.is_dir() and not any(task.iterdir()):
                task.rmdir()
    return removed


def _may_go(record: Record) -> bool:
    """True if neither an apply nor an undo of the record was interrupted."""
    return record.done and not record.has(UNDOING)


def _forget(record: Record) -> bool:
    """Delete a record, and the refs by which git kept the commits that its undo would need. Returns False if this
    fails."""
    try:
        if record.problem() is None:
            for act in record.manifest().git:
                forget(act)
        record.forget()
    except (OSError, SandboxError) as error:
        logger.warning("the undo record %s cannot be deleted: %s", record.place, error)
        return False
    return True


def _made_at(record: Record) -> float:
    with suppress(SandboxError):
        return record.manifest().created_at
    return (record.place / MANIFEST).stat().st_mtime


def _bytes_kept(record: Record) -> int:
    """Return the bytes of all before-images of a record. Raises OSError."""
    total = 0
    for directory, _, names in os.walk(record.place):
        found = (os.path.join(directory, name) for name in names if directory != str(record.place))
        total += sum(os.lstat(one).st_size for one in found)
    return total
