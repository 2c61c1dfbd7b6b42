"""Applies approved changes to the user's files: all of them, or none."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import ApplyReport, Conflict
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.dirfd_ops import Walker, open_to_sync, sync
from artoo.workspace.commit.execute import ChangedMeanwhile, Move, execute, to_sync
from artoo.workspace.commit.manifest import Manifest, Record, Step, exclusive, now, records_of
from artoo.workspace.commit.prepare import check, location_of, prepare, prepared_files, refuse_unsupported
from artoo.workspace.commit.recovery import recover_record
from artoo.workspace.commit.restore import directories_of, roll_back, settle_record, slots_needed
from artoo.workspace.commit.slots import Slots
from artoo.workspace.commit.temporary_modes import Modes, lock_again, unlocked
from artoo.workspace.git.act import GitAct, move


def apply(
    effects: Sequence[Effect], git_acts: Sequence[GitAct] = (), *, task_id: str, undo_home: Path, note: str = ""
) -> ApplyReport:
    """Apply effects and git's operations, all or nothing; with conflicts nothing. Blocking.

    The new versions are copied from the effects' sources, which stay as they are. `note` is kept with the record.
    Raises SandboxError if the system refuses: then everything is as before, or will be after the next start.
    """
    refuse_unsupported(effects)
    with exclusive(undo_home):
        try:
            for record in records_of(undo_home, task_id):
                if not record.done:
                    recover_record(record)
            return _apply(effects, git_acts, Record.begin(undo_home, task_id), note, beside=False)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise _refused(error) from error
        # No rename leads from the record to these targets (another quota, another key): stage next to them instead.
        try:
            return _apply(effects, git_acts, Record.begin(undo_home, task_id), note, beside=True)
        except OSError as error:
            raise _refused(error) from error


def _refused(error: OSError) -> SandboxError:
    return SandboxError(f"the changes could not be applied ({error}); everything is as before")


class _Failure(NamedTuple):
    """An apply that was taken back: the cause, what stays as the user has it now, and what must stay on record."""

    error: OSError | SandboxError
    conflicts: Sequence[Conflict]
    left: Sequence[Step]


def _apply(
    effects: Sequence[Effect], git_acts: Sequence[GitAct], record: Record, note: str, *, beside: bool
) -> ApplyReport:
    """Apply with a new record, which is forgotten if nothing was applied. Raises OSError, SandboxError."""
    manifest = failure = None
    changes = ((location_of(one), one.before, one.after, one.in_place) for one in effects)
    try:
        with unlocked(record, directories_of(changes)) as modes:
            drafts, conflicts = check(effects, modes)
            if not conflicts:
                slots = Slots(record, beside=beside)
                manifest = _commit(record, effects, drafts, git_acts, note, slots, beside=beside)
                failure = _carry_out(record, manifest, slots, modes)
    except BaseException:
        if not record.committed:
            _forget(record)
        raise
    if manifest is None:
        _forget(record)
        return ApplyReport(applied=False, conflicts=tuple(conflicts))
    if failure is not None:
        return _taken_back(record, manifest, failure)
    return ApplyReport(applied=True, paths=tuple(one.shown for one in effects), transaction=record.name)


def _forget(record: Record) -> None:
    """Delete a record with which nothing was replaced; on a disk that fails the next start does it."""
    with suppress(OSError, SandboxError):
        lock_again(record)
        Slots(record).clean()
        record.forget()


def _taken_back(record: Record, manifest: Manifest, failure: _Failure) -> ApplyReport:
    """Report conflicts if the user's own change was the cause. Raises OSError, SandboxError for any other."""
    settle_record(record, manifest.model_copy(update={"git": (), "note": "", "rest": True}), failure.left)
    if not isinstance(failure.error, ChangedMeanwhile):
        raise failure.error
    return ApplyReport(applied=False, conflicts=tuple(failure.conflicts))


def _commit(
    record: Record,
    effects: Sequence[Effect],
    drafts: Sequence[Step],
    git_acts: Sequence[GitAct],
    note: str,
    slots: Slots,
    *,
    beside: bool,
) -> Manifest:
    """Make everything ready, and write and sync the manifest. Raises OSError, SandboxError."""
    slots.assign(*slots_needed(drafts))
    manifest = Manifest(
        task_id=record.task_id,
        created_at=now(),
        steps=tuple(prepare(record, drafts, effects, slots)),
        git=tuple(git_acts),
        note=note,
        beside=beside,
    )
    sync(prepared_files(record, manifest, slots, record.write(manifest)))
    record.commit()
    return manifest


def _carry_out(record: Record, manifest: Manifest, slots: Slots, modes: Modes) -> _Failure | None:
    """Replace the paths, move git's refs, and mark it done; or take everything back and return the failure.

    Raises SandboxError if not everything could be taken back: the next start tries again.
    """
    moves = [
        Move(one.where, one.path, one.before, one.after, slots.of(one.number), one.in_place)
        for one in manifest.steps
    ]
    try:
        execute(moves, modes)
        for act in manifest.git:
            move(act)
        with Walker() as walker:
            sync(open_to_sync(walker, to_sync(moves)))
        record.mark_done()
    except (OSError, SandboxError) as error:
        conflicts, left = roll_back(record, manifest, modes)
        if not isinstance(error, ChangedMeanwhile):
            return _Failure(error, conflicts, left)
        first = Conflict(path=str(error.filename), reason="it was changed at this moment; your version stays")
        others = [one for one in conflicts if one.path != first.path]
        return _Failure(error, [first, *others], [step for step in left if step.path != first.path])
    with suppress(OSError):  # it did take effect; the next start cleans up
        slots.clean()
    return None
