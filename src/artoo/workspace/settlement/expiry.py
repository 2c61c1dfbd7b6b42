"""Drop change sets that were pending too long, after a notice to the user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.finish import finish_interrupted
from artoo.workspace.settlement.history import LISTED, SettledRecord, note_settled
from artoo.workspace.settlement.pending import DAY, Keeping, PendingRecord, read_pending, size_of, write_pending

NOTICE = 3 * DAY
"""The user is warned this long before anything is dropped, however late the warning comes."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What a look at the clock found. `warned`: the user must be told of these now; `dropped`: these are gone."""

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
                    dropped.append(_dropped(directory, renewed, now))
                    note_settled(artoo_home, dropped[-1])
                    directory.remove()
                    continue
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
