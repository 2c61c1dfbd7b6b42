"""Finish an apply that took effect but was interrupted, by the note in its undo record.

    commit (done, or rolled back) ─► settled.jsonl ─► workspace deleted, or its base updated ─► record closed

The undo record stays open until all these steps are done. If the process dies before that, the next process that
opens the workspace finishes them.
"""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import Settled
from artoo.workspace.changes.base import rebase
from artoo.workspace.commit import Record, records_of
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.settlement.history import SettledRecord, note_settled, settled_records

logger = logging.getLogger(__name__)

Moment = Literal["end", "live", "later"]
"""The moment of an apply: at the end of the task, during the task (`--apply live`), or later."""


class ActNote(BaseModel):
    """The note in the undo record of one apply. `digest`: the digest of the approved change set.

    `outcome`: the task's report of the apply (JSON, `contracts.settling.Settled`). It is empty for an apply after
    the task. `told`: the line to be written to `settled.jsonl`. `workspace`: the creation time of the workspace. A
    later workspace of the same task has another one. `whole`: true if the whole change set is applied and the
    workspace deleted. Otherwise only `paths` (printable) are applied.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    moment: Moment
    digest: str
    workspace: float
    whole: bool
    paths: tuple[str, ...] = ()
    outcome: str = ""
    told: SettledRecord | None = None


def noted_acts(artoo_home: Path, task_id: str) -> tuple[tuple[Record, ActNote], ...]:
    """Return the undo records of a task with their notes, oldest first.

    Interrupted applies are included, but applies that were undone are not. Raises SandboxError when a record cannot
    be read.
    """
    found = [(record, _note_of(record)) for record in records_of(artoo_home / "undo", task_id)]
    return tuple((record, note) for record, note in found if note is not None)


def _note_of(record: Record) -> ActNote | None:
    """Return the note of a record. Return None if the record has no note or the apply was rolled back."""
    with suppress(ValidationError):
        return ActNote.model_validate_json(record.note)
    return None


def outcomes(artoo_home: Path, task_id: str, moment: Moment) -> tuple[Settled, ...]:
    """Return the reports of the applies that the task itself made at this moment, oldest first.

    With the reports from the end of the task, a process that died right after its apply is distinguished from a
    user who applied or discarded later. Raises SandboxError.
    """
    acts = noted_acts(artoo_home, task_id)
    told = [note.outcome for record, note in acts if record.done and note.moment == moment and note.outcome]
    return tuple(map(Settled.model_validate_json, told))


def took_effect(artoo_home: Path, task_id: str, digest: str | None = None) -> bool:
    """True if a change set was applied and has not been undone since. `digest`: the digest of the change set. If it
    is None, any change set of the task counts."""
    return any(record.done and digest in (None, note.digest) for record, note in noted_acts(artoo_home, task_id))


def finish_interrupted(directory: WorkspaceDirectory, artoo_home: Path) -> None:
    """Finish the steps after those applies of this workspace that took effect. Idempotent.

    The caller holds the lock. Raises SandboxError when an apply cannot be finished yet.
    """
    records = records_of(artoo_home / "undo", directory.task_id)
    noted = [(record, _note_of(record)) for record in records if record.is_open]
    for record, note in noted:
        if note is not None and not record.done:
            raise SandboxError(
                f"an apply of task {directory.task_id} was interrupted and is not rolled back yet; artoo tries it"
                " at every start and says what is in the way: remove that first"
            )
    try:
        for record, note in noted:
            if note is not None:
                _finish(directory, artoo_home, record, note)
    except OSError as error:
        remedy = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "fix that first"
        raise SandboxError(f"the workspace {directory.base} cannot be put in order ({error}); {remedy}") from error


def _finish(directory: WorkspaceDirectory, artoo_home: Path, record: Record, note: ActNote) -> None:
    if note.told is not None:
        line = note.told.model_copy(update={"act": record.name})
        if line not in settled_records(artoo_home):
            note_settled(artoo_home, line)
    # A task that continues makes a new workspace, on which the note of an old apply must have no effect.
    if directory.exists and directory.record().created_at == note.workspace:
        if note.whole:
            directory.remove()
        else:
            # The applied versions may stay in the upper directory. They equal the new base, so they do not count as
            # changes.
            rebase(directory, note.paths)
    record.close()


def discard(directory: WorkspaceDirectory, artoo_home: Path, settled: SettledRecord) -> None:
    """Record that a workspace is discarded, and delete it. If a crash happens in between, the call can be repeated.

    If the history cannot be written, the workspace is deleted first, because it may be filling the disk. Then the
    record is tried again. If that fails too, the workspace is still discarded, and a warning is logged. Raises
    SandboxError when the workspace cannot be deleted.
    """
    try:
        made = directory.record().created_at
    except SandboxError:  # the record of the workspace is damaged or has another format
        made = settled.at
    recorded = _record_once(artoo_home, settled, since=made)
    try:
        directory.remove()
    except OSError as error:
        raise SandboxError(
            f"the changes of task {settled.task_id} are not discarded: {directory.base} cannot be deleted: {error}"
        ) from error
    if not recorded and not _record_once(artoo_home, settled, since=made):
        logger.warning("task %s is discarded, but the history has no room for it", settled.task_id)


def _record_once(artoo_home: Path, settled: SettledRecord, *, since: float) -> bool:
    """Write a line to the history, unless it has been written since `since`. Returns False if the history cannot be
    used."""
    try:
        if not any(
            (one.task_id, one.what) == (settled.task_id, settled.what) and one.at > since
            for one in settled_records(artoo_home)
        ):
            note_settled(artoo_home, settled)
    except OSError:
        return False
    return True
