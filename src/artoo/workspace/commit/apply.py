"""Applies approved changes to the user's files: all of them, or none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.changes import ApplyReport, Conflict
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.dirfd_ops import sync
from artoo.workspace.commit.execute import ChangedMeanwhile, execute, to_sync
from artoo.workspace.commit.manifest import MANIFEST, NOTE, STAGING, Manifest, Record, Step, exclusive, records_of
from artoo.workspace.commit.prepare import (
    check,
    choose_slots,
    is_beside,
    prepare,
    refuse_unsupported,
    to_sync_first,
)
from artoo.workspace.commit.restore import roll_back, settle_rolled_back
from artoo.workspace.commit.undo import clean_up, recover_record
from artoo.workspace.git.act import GitAct, move


def apply(
    effects: Sequence[Effect],
    git_acts: Sequence[GitAct] = (),
    *,
    task_id: str,
    undo_home: Path,
    note: str = "",
    share: bool = False,
) -> ApplyReport:
    """Apply effects and git's operations, all or nothing; with conflicts nothing. Blocking.

    The new versions are copied from the effects' sources, which stay as they are. `share`: the caller deletes the
    sources after a success, so they may be hard-linked instead. `note` is kept with the record.

    Raises SandboxError if the system refuses: then everything is as before, or will be after the next start.
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
    """Make everything ready, and write the manifest. Raises OSError, SandboxError; then nothing is left of it."""
    try:
        choose_slots(record, steps)
        if next_to := tuple(step for step in steps if is_beside(record, step)):
            record.write(STAGING, _manifest(record, next_to, ()))
        prepare(record, steps, effects, share=share)
        (record.place / NOTE).write_text(note, "utf-8")
        manifest = _manifest(record, steps, git_acts)
        record.write(MANIFEST, manifest, durably=False)
    except BaseException:
        if not record.committed:
            with suppress(OSError, SandboxError):  # on a disk that fails: the next start does it
                clean_up(record)
        raise
    return manifest


def _manifest(record: Record, steps: Sequence[Step], git_acts: Sequence[GitAct]) -> Manifest:
    return Manifest(task_id=record.task_id, created_at=time.time(), steps=tuple(steps), git=tuple(git_acts))


def _carry_out(record: Record, manifest: Manifest) -> Sequence[Conflict]:
    """Replace the paths, move git's refs, and mark it done. Return conflicts if all was taken back for them.

    Raises OSError, SandboxError if all was taken back for another reason, or will be by the next start.
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
    with suppress(OSError, SandboxError):  # it did take effect; the next start cleans up
        clean_up(record)
    return ()
