"""What is written down of a difference that waits for consent, and how long it is kept.

VIEWS/TASK/pending.json   this record; durable before the task's end says that something waits
VIEWS/TASK/applying.json  an apply under way (`settle`)
VIEWS/settled.jsonl       what became of differences after their tasks had ended, what expired among it
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassCount
from artoo.disk.whole import write_durably
from artoo.world.files import sync_file_system
from artoo.world.view_place import ViewPlace, Views

DAY = 86_400.0
NOTICE = 3 * DAY
"""A person is warned this long before anything is dropped, however late the warning comes."""

_FILE = "pending.json"
_HISTORY = "settled.jsonl"
_LISTED = 1_000


def _none(number: int) -> bool:
    return number == 0


def _unset(time: float | None) -> bool:
    return time is None


class PendingRecord(BaseModel):
    """`pending.json`. Times are seconds since the epoch (UTC).

    `expires_at`: when it goes by its age; `crowded_until`: for want of room (None: there is room). `warned_at`:
    since when the person knows that it will go; None: not yet, or room was made since. `reason` says in words
    why it waits, in `language`. `conflicts`: how many paths are in conflict; `counts` do not hold them.
    `cut_off`: the task left no record; this one only says that the person was warned.
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
    conflicts: int = Field(default=0, ge=0, exclude_if=_none)
    went_out: tuple[str, ...] = ()
    expires_at: float
    crowded_until: float | None = Field(default=None, exclude_if=_unset)
    warned_at: float | None = None
    cut_off: bool = False

    @property
    def due(self) -> float:
        """When it goes as things are."""
        return self.expires_at if self.crowded_until is None else min(self.expires_at, self.crowded_until)


class SettledRecord(BaseModel):
    """One line of `settled.jsonl`. `what`: applied, discarded, expired or undone. `paths` are the first thousand,
    `count` is how many there were; `left`: those that were not put back. `act` is its record in the journal; empty:
    none."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    at: float
    task_id: str
    what: str
    by: str
    request: str = ""
    digest: str = ""
    count: int = 0
    paths: tuple[str, ...] = ()
    left: int = 0
    act: str = ""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long, and how much of it, waits for consent."""

    days: float = 30.0
    total_bytes: int = 4 << 30


def write_pending(place: ViewPlace, record: PendingRecord) -> None:
    """Makes the record durable, and everything else of the view before it. Raises OSError (disk full); then the
    view is there, without a (new) record."""
    sync_file_system(place.base)
    write_durably(place.base / _FILE, record.model_dump_json().encode())


def read_pending(place: ViewPlace) -> PendingRecord | None:
    """None when the view waits for nobody: its task was cut off, or is at work. Raises SandboxError."""
    path = place.base / _FILE
    try:
        return PendingRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error


def forget_pending(place: ViewPlace) -> None:
    """The task goes on: nothing of it waits any more."""
    (place.base / _FILE).unlink(missing_ok=True)


def settled_records(views: Path) -> tuple[SettledRecord, ...]:
    """What became of differences after their tasks' ends, oldest first; a line that a full disk cut is left out.

    Raises OSError.
    """
    found: list[SettledRecord] = []
    lines = (views / _HISTORY).read_bytes().splitlines() if (views / _HISTORY).exists() else []
    for line in lines:
        with suppress(ValidationError):
            found.append(SettledRecord.model_validate_json(line))
    return tuple(found)


def note_settled(views: Path, record: SettledRecord) -> None:
    """One line more in the record of what became of differences, on a line of its own. Raises OSError."""
    descriptor = os.open(views / _HISTORY, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "ab") as file:
        size = os.fstat(descriptor).st_size
        cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        file.write(b"\n" * cut + record.model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(descriptor)


def size_of(place: ViewPlace) -> int:
    """Bytes on disk of a view."""
    total = 0
    for directory, _, files in os.walk(place.base):
        for name in files:
            with suppress(FileNotFoundError):  # somebody works in it, or has just settled it
                total += os.lstat(os.path.join(directory, name)).st_blocks * 512
    return total


@dataclass(frozen=True, slots=True)
class Expiry:
    """What a look at the clock found. `warned`: views whose person must be told now; `dropped`: what is gone."""

    warned: tuple[PendingRecord, ...] = ()
    dropped: tuple[SettledRecord, ...] = ()


def expire(artoo_home: Path, keep: Keeping, now: float) -> Expiry:
    """Warns of what expires soon, and drops what has expired and was warned of. Blocking.

    A view whose task is at work is left alone. When all that waits needs more room than `keep` allows, the oldest
    expire after the notice, unless there is room by then. Raises OSError.
    """
    warned: list[PendingRecord] = []
    dropped: list[SettledRecord] = []
    waiting = [(record.since, place) for place in Views(artoo_home).listed() if (record := _waiting(place, keep))]
    room = keep.total_bytes
    for _, place in sorted(waiting, key=lambda one: -one[0]):
        size = size_of(place)
        room -= size
        match _looked_at(place, keep, now, crowded=room < 0):
            case PendingRecord() as record:
                warned.append(record)
            case SettledRecord() as gone:
                dropped.append(gone)
                room += size
            case None:
                pass
    return Expiry(tuple(warned), tuple(dropped))


def _waiting(place: ViewPlace, keep: Keeping) -> PendingRecord | None:
    """What waits there; None when somebody works in it, or it is damaged: then it is kept."""
    try:
        with place.locked():
            return _record_of(place, keep)
    except SandboxError:
        return None


def _looked_at(
    place: ViewPlace, keep: Keeping, now: float, *, crowded: bool
) -> PendingRecord | SettledRecord | None:
    """What is to be told of one view at this moment, if anything is: it goes soon, or is gone.

    Its record is read again: the task may have gone on since sizes were looked at, and waits anew.
    """
    try:
        with place.locked():
            record = _record_of(place, keep)
            if record is None:
                return None
            looked = _with_notice(record, now, crowded=crowded)
            if looked.due <= now:
                gone = _gone(place, looked, now)
                note_settled(place.base.parent, gone)
                place.remove()
                return gone
            if looked != record:
                write_pending(place, looked)
            return looked if looked.warned_at is not None else None
    except SandboxError:
        return None


def _record_of(place: ViewPlace, keep: Keeping) -> PendingRecord | None:
    """Of a task that was cut off, when it was last worked on. None while an apply is cut: what it exchanged may be
    in the view alone. Raises SandboxError."""
    if place.applying.exists():
        return None
    record = read_pending(place)
    if record is not None or not place.exists:
        return record
    layers = place.base / "layers"
    since = layers.stat().st_mtime if layers.is_dir() else place.record().created_at
    return PendingRecord(task_id=place.task_id, since=since, expires_at=since + keep.days * DAY, cut_off=True)


def _with_notice(record: PendingRecord, now: float, *, crowded: bool) -> PendingRecord:
    """The record with its deadline for room, and with the notice that its person gets, or needs no more."""
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


def _gone(place: ViewPlace, record: PendingRecord, now: float) -> SettledRecord:
    return SettledRecord(
        at=now,
        task_id=record.task_id,
        what="expired",
        by="time",
        request=record.request,
        digest=record.digest,
        count=sum(each.count for each in record.counts),
        paths=tuple(_paths_in(place))[:_LISTED],
    )


def _paths_in(place: ViewPlace) -> Iterable[str]:
    """What the view held, as places below its layers: the record of a drop is not a reason to read every file."""
    for layer in place.trunk():
        for directory, _, files in os.walk(layer.upper):
            yield from (os.path.join(directory, name).removeprefix(str(layer.upper)) for name in sorted(files))
