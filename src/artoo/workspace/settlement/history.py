"""Append and read `settled.jsonl`, the record of applied, discarded and undone change sets.

WORKSPACES/settled.jsonl   one line for each (part of a) change set that was applied, discarded, dropped or undone
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.disk.whole import sync_directory

LISTED = 1_000
"""The maximum number of paths that one record lists. `SettledRecord.count` is the total number."""


class SettledRecord(BaseModel):
    """One line of `settled.jsonl`.

    `what`: applied, discarded, expired or undone. `paths`: the first thousand paths. `count`: the number of all
    paths. `left`: the number of paths that could not be undone. `act`: the name of the undo record. It is empty if
    there is none.
    """

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


def settled_records(artoo_home: Path) -> tuple[SettledRecord, ...]:
    """Return all records, oldest first. A line that was truncated because the disk was full is left out. Raises
    OSError."""
    found: list[SettledRecord] = []
    file = _history(artoo_home)
    for line in file.read_bytes().splitlines() if file.exists() else ():
        with suppress(ValidationError):
            found.append(SettledRecord.model_validate_json(line))
    return tuple(found)


def note_settled(artoo_home: Path, record: SettledRecord) -> None:
    """Append a record, durably. Raises OSError."""
    file = _history(artoo_home)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "ab") as stream:
        size = os.fstat(descriptor).st_size
        # A line that was truncated because the disk was full has no newline, so the next line must begin with one.
        cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        stream.write(b"\n" * cut + record.model_dump_json().encode() + b"\n")
        stream.flush()
        os.fsync(descriptor)
    if size == 0:
        sync_directory(file.parent)


def _history(artoo_home: Path) -> Path:
    return artoo_home / "workspaces" / "settled.jsonl"
