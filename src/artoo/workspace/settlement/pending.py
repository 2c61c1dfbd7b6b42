"""The record `pending.json` of changes without approval, and the days and bytes for which they are retained.

WORKSPACES/TASK/pending.json   this record; durable before the end of the task reports that changes are pending
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import PENDING_DAYS, PENDING_MEGABYTES, ClassCount
from artoo.disk.file_system import sync_file_system
from artoo.disk.whole import write_durably
from artoo.sandbox.limits.usage import disk_usage
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.finish import discard, finish_interrupted
from artoo.workspace.settlement.history import LISTED, SettledRecord

DAY = 86_400.0


class PendingRecord(BaseModel):
    """The content of `pending.json`. Times are seconds since the epoch (UTC).

    `expires_at`: when the change set will be deleted because of its age. `crowded_until`: when it will be deleted
    because pending changes use too much space. It is None if there is enough space. `warned_at`: when the user was
    warned. It is None if no warning is needed yet. `reason`: why the change set is pending, in the language
    `language`. `conflicts`: the number of paths in conflict, which `counts` does not include. `cut_off`: true if
    the task was interrupted and left no record, so that this one was made only for the warning.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: int = 1
    task_id: str
    request: str = ""
    language: str = "en"
    since: float
    digest: str = ""
    counts: tuple[ClassCount, ...] = ()
    reason: str = ""
    conflicts: int = Field(default=0, ge=0)
    went_out: tuple[str, ...] = ()
    expires_at: float
    crowded_until: float | None = None
    warned_at: float | None = None
    cut_off: bool = False

    @property
    def due(self) -> float:
        """The time at which the change set will be deleted, unless the record changes before."""
        return self.expires_at if self.crowded_until is None else min(self.expires_at, self.crowded_until)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The limits for pending change sets, in days and in total bytes."""

    days: float = PENDING_DAYS
    total_bytes: int = PENDING_MEGABYTES << 20


def write_pending(directory: WorkspaceDirectory, record: PendingRecord) -> None:
    """Write the record durably, after the rest of the workspace is synced to disk.

    Raises OSError if the disk is full. The workspace exists then, without a new record.
    """
    sync_file_system(directory.base)
    write_durably(directory.pending, record.model_dump_json().encode())


def read_pending(directory: WorkspaceDirectory) -> PendingRecord | None:
    """Read the record. Returns None if the task was interrupted or is running. Raises SandboxError."""
    path = directory.pending
    try:
        return PendingRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error


def forget_pending(directory: WorkspaceDirectory) -> None:
    """Delete the record, because the task continues. Idempotent."""
    directory.pending.unlink(missing_ok=True)


def size_of(directory: WorkspaceDirectory) -> int:
    """Return the bytes on disk of a workspace."""
    return disk_usage((directory.base,), 1 << 62, 1 << 62)[0]


NOTICE = 3 * DAY
"""The time between the warning and the deletion. If the warning is late, the deletion is postponed."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """The result of `expire`. `warned`: the records of which the user must be warned now. `dropped`: the history
    lines about the change sets that were deleted."""

    warned: tuple[PendingRecord, ...] = ()
    dropped: tuple[SettledRecord, ...] = ()


def expire(artoo_home: Path, keep: Keeping, now: float) -> Expiry:
    """Warn of change sets that expire soon, and delete those that have expired after a warning. Blocking.

    The workspace of a running task, or a damaged workspace, is left unchanged. If all pending change sets together
    need more space than `keep` allows, the oldest are deleted after a warning, unless there is enough space by
    then. Raises OSError.
    """
    warned: list[PendingRecord] = []
    dropped: list[SettledRecord] = []
    room = keep.total_bytes
    for directory in sorted(Workspaces(artoo_home).listed(), key=_since, reverse=True):
        try:
            with directory.locked():
                size = size_of(directory)
                record = _record_of(directory, artoo_home, keep)
                if record is None:
                    continue
                renewed = _with_notice(record, now, crowded=room < size)
                if renewed.due <= now:
                    line = _dropped(directory, renewed, now)
                    discard(directory, artoo_home, line)
                    dropped.append(line)
                    continue
                # The space is given to the newest workspaces first, so the oldest expire when there is not enough.
                room -= size
                if renewed != record:
                    write_pending(directory, renewed)
                if renewed.warned_at is not None:
                    warned.append(renewed)
        except SandboxError:
            continue
    return Expiry(tuple(warned), tuple(dropped))


def _since(directory: WorkspaceDirectory) -> float:
    """Return the time since which a workspace is pending. For an interrupted task, it is the time when it last
    started a command."""
    try:
        record = read_pending(directory)
        return directory.output.stat().st_mtime if record is None or record.cut_off else record.since
    except (SandboxError, OSError):  # another process is settling the workspace, or the workspace is damaged
        return 0.0


def _record_of(directory: WorkspaceDirectory, artoo_home: Path, keep: Keeping) -> PendingRecord | None:
    """Return the record. For an interrupted task, return a new record whose time counts from the last command.

    Returns None if the workspace no longer exists. Raises SandboxError, also if an interrupted apply is not
    finished yet.
    """
    finish_interrupted(directory, artoo_home)
    record = read_pending(directory)
    if record is not None or not directory.exists:
        return record
    since = _since(directory)
    return PendingRecord(task_id=directory.task_id, since=since, expires_at=since + keep.days * DAY, cut_off=True)


def _with_notice(record: PendingRecord, now: float, *, crowded: bool) -> PendingRecord:
    """Return the record with its deadline for lack of space. A warning is set if one is due, and withdrawn
    otherwise."""
    until = (record.crowded_until or now + NOTICE) if crowded else None
    record = record.model_copy(update={"crowded_until": until})
    if record.due - now > NOTICE:
        return record.model_copy(update={"warned_at": None})
    if record.warned_at is not None:
        return record
    soonest = now + NOTICE
    until = None if until is None else max(until, soonest)
    return record.model_copy(
        update={"warned_at": now, "expires_at": max(record.expires_at, soonest), "crowded_until": until}
    )


def _dropped(directory: WorkspaceDirectory, record: PendingRecord, now: float) -> SettledRecord:
    return SettledRecord(
        at=now,
        task_id=record.task_id,
        what="expired",
        by="time",
        request=record.request,
        digest=record.digest,
        count=sum(each.count for each in record.counts),
        paths=tuple(islice(_paths_in(directory), LISTED)),
    )


def _paths_in(directory: WorkspaceDirectory) -> Iterator[str]:
    """List the paths in the workspace without reading any file."""
    for one in directory.covered():
        for place, _, files in os.walk(one.place):
            yield from (os.path.join(place, name).removeprefix(str(one.place)) for name in sorted(files))
