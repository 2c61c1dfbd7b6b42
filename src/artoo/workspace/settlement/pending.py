"""The record of a change set that waits for the user's approval.

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
from artoo.contracts.settling import ClassCount
from artoo.disk.file_system import sync_file_system
from artoo.disk.whole import write_durably
from artoo.sandbox.limits.usage import disk_usage
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.finish import discard, finish_interrupted
from artoo.workspace.settlement.history import LISTED, SettledRecord

DAY = 86_400.0


class PendingRecord(BaseModel):
    """The content of `pending.json`. Times are seconds since the epoch (UTC).

    `expires_at`: when it is dropped because of its age; `crowded_until`: when it is dropped because too much is
    pending (None: there is room). `warned_at`: since when the user knows that it will be dropped; None: not yet, or
    there is room again. `reason` says in `language` why it is pending. `conflicts` counts the paths in conflict,
    which `counts` does not contain. `cut_off`: the task left no record; this one only says that a user was warned.
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
        """The time at which it is dropped as things are."""
        return self.expires_at if self.crowded_until is None else min(self.expires_at, self.crowded_until)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The bounds for pending change sets: time and bytes."""

    days: float = 30.0
    total_bytes: int = 4 << 30


def write_pending(directory: WorkspaceDirectory, record: PendingRecord) -> None:
    """Write the record durably, and everything else of the workspace before it.

    Raises OSError (full disk); then the workspace is there without a new record.
    """
    sync_file_system(directory.base)
    write_durably(directory.pending, record.model_dump_json().encode())


def read_pending(directory: WorkspaceDirectory) -> PendingRecord | None:
    """Read the record; None if the task was cut off or is at work. Raises SandboxError."""
    path = directory.pending
    try:
        return PendingRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error


def forget_pending(directory: WorkspaceDirectory) -> None:
    """Delete the record, because the task goes on. Idempotent."""
    directory.pending.unlink(missing_ok=True)


def size_of(directory: WorkspaceDirectory) -> int:
    """Return the bytes on disk of a workspace."""
    return disk_usage((directory.base,), 1 << 62, 1 << 62)[0]


NOTICE = 3 * DAY
"""The user is warned this long before anything is dropped, however late the warning comes."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """The result of a look at the clock. `warned`: the user must be warned of these now; `dropped`: these are
    gone."""

    warned: tuple[PendingRecord, ...] = ()
    dropped: tuple[SettledRecord, ...] = ()


def expire(artoo_home: Path, keep: Keeping, now: float) -> Expiry:
    """Warn of what expires soon, and drop what has expired after a warning. Blocking.

    A workspace whose task is at work, and one that is damaged, is left alone. When everything that is pending needs
    more room than `keep` allows, the oldest expire after the notice, unless there is room by then. Raises OSError.
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
                # The newest workspaces get the room, so the oldest expire when there is not enough.
                room -= size
                if renewed != record:
                    write_pending(directory, renewed)
                if renewed.warned_at is not None:
                    warned.append(renewed)
        except SandboxError:
            continue
    return Expiry(tuple(warned), tuple(dropped))


def _since(directory: WorkspaceDirectory) -> float:
    """Return when it began to be pending; of a task that was cut off, when it last started a command."""
    try:
        record = read_pending(directory)
        return directory.output.stat().st_mtime if record is None or record.cut_off else record.since
    except (SandboxError, OSError):  # settled at this moment, or damaged
        return 0.0


def _record_of(directory: WorkspaceDirectory, artoo_home: Path, keep: Keeping) -> PendingRecord | None:
    """Return the record; of a task that was cut off, one that counts from when it was last worked on.

    None if nothing is left of it. Raises SandboxError, also while an interrupted apply is not ended.
    """
    finish_interrupted(directory, artoo_home)
    record = read_pending(directory)
    if record is not None or not directory.exists:
        return record
    since = _since(directory)
    return PendingRecord(task_id=directory.task_id, since=since, expires_at=since + keep.days * DAY, cut_off=True)


def _with_notice(record: PendingRecord, now: float, *, crowded: bool) -> PendingRecord:
    """Return the record with its deadline for room, and with the notice that the user gets or needs no more."""
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
    """List what the workspace held, without reading any file."""
    for one in directory.covered():
        for place, _, files in os.walk(one.place):
            yield from (os.path.join(place, name).removeprefix(str(one.place)) for name in sorted(files))
