"""The record of a change set that waits for the user's approval.

WORKSPACES/TASK/pending.json   this record; durable before the end of the task reports that changes are pending
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassCount
from artoo.disk.file_system import sync_file_system
from artoo.disk.whole import write_durably
from artoo.workspace.directory import WorkspaceDirectory

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
        """When it is dropped as things are."""
        return self.expires_at if self.crowded_until is None else min(self.expires_at, self.crowded_until)


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long, and how much of it, may be pending."""

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
    total = 0
    for place, _, files in os.walk(directory.base):
        for name in files:
            with suppress(FileNotFoundError):  # a process works in it, or has just settled it
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total
