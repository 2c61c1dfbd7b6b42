"""The mark of an apply or a discard under way, so that a crash leaves nothing half done.

    settling.json ─► commit (done, or rolled back) ─► settled.jsonl ─► the workspace goes, or its base moves on

WORKSPACES/TASK/settling.json   names the undo record that will tell whether the commit took effect
"""

from __future__ import annotations

import errno
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory, write_durably
from artoo.workspace.changes.base import rebase
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.settlement.history import SettledRecord, note_settled, settled_records
from artoo.workspace.settlement.notes import commit_of


class Mark(BaseModel):
    """The content of `settling.json`.

    `settlement`: the id of the commit, as in the note of its undo record; empty for a discard, which takes effect
    as soon as this is written. `whole`: the workspace is deleted afterwards. `paths`: what is applied, printable.
    `told`: the line of `settled.jsonl`, whichever process writes it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    settlement: str
    whole: bool
    paths: tuple[str, ...] = ()
    told: SettledRecord | None = None


def write_mark(directory: WorkspaceDirectory, mark: Mark) -> None:
    """Write the mark durably, before the commit begins. Raises OSError."""
    write_durably(directory.settling, mark.model_dump_json().encode())


def forget_mark(directory: WorkspaceDirectory) -> None:
    """Delete the mark: the commit did not take effect, or everything after it is done. Raises OSError."""
    directory.settling.unlink(missing_ok=True)
    sync_directory(directory.base)


def end_interrupted(directory: WorkspaceDirectory, artoo_home: Path) -> bool:
    """End an apply or a discard that a crash interrupted; return True if it had taken effect.

    The caller holds the lock. Raises SandboxError when that is not possible yet.
    """
    mark = _read(directory)
    if mark is None:
        return False
    record = commit_of(artoo_home, directory.task_id, mark.settlement) if mark.settlement else None
    if record is not None and not record.done:
        raise SandboxError(
            f"an apply of task {directory.task_id} was interrupted and is not rolled back yet; artoo tries it at "
            "every start and says what is in the way: remove that first"
        )
    took_effect = record is not None or not mark.settlement
    try:
        if took_effect:
            finish(directory, artoo_home, mark, record.name if record is not None else "")
        else:
            forget_mark(directory)
    except OSError as error:
        remedy = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "fix that first"
        raise SandboxError(f"the workspace {directory.base} cannot be put in order ({error}); {remedy}") from error
    return took_effect


def finish(directory: WorkspaceDirectory, artoo_home: Path, mark: Mark, record: str) -> None:
    """Do everything that follows a commit which took effect. Idempotent. Raises OSError.

    `record`: the name of its undo record; empty: a discard.
    """
    if mark.told is not None:
        line = mark.told.model_copy(update={"act": record})
        if line not in settled_records(artoo_home):
            note_settled(artoo_home, line)
    if mark.whole:
        directory.remove()
        return
    # What was applied may stay in the upper directory: as the task's version equals the new base, it is no change.
    rebase(directory, mark.paths)
    forget_mark(directory)


def discard(directory: WorkspaceDirectory, artoo_home: Path, settled: SettledRecord) -> None:
    """Delete a workspace at the user's request, and record it.

    On a full disk the workspace goes first, because it may be what fills the disk. Raises OSError when it is gone
    and there is no room for the record.
    """
    mark = Mark(settlement="", whole=True, told=settled)
    try:
        write_mark(directory, mark)
    except OSError:
        directory.remove()
        note_settled(artoo_home, settled)
        return
    finish(directory, artoo_home, mark, "")


def _read(directory: WorkspaceDirectory) -> Mark | None:
    try:
        return Mark.model_validate_json(directory.settling.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{directory.settling} cannot be read: {error}; keep it and report this") from error
