"""The notes that settlement leaves in the undo records of a task: what was applied, and on whose word."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.workspace.commit import Record, records_of

Moment = Literal["end", "live", "later"]
"""When it was applied: at the end of the task, during the task (`--apply live`), or later."""


class ActNote(BaseModel):
    """The note of one commit. `settlement` is its id; `digest` that of the change set that was approved.

    `outcome` is what the end of the task reports of it (JSON, `contracts.settling.Settled`); `paths` are the
    first thousand of a live apply.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    settlement: str
    moment: Moment
    digest: str = ""
    outcome: str = ""
    paths: tuple[str, ...] = ()


def noted_acts(artoo_home: Path, task_id: str) -> tuple[tuple[Record, ActNote], ...]:
    """Return the undo records of a task with their notes, oldest first; interrupted commits are included.

    What was undone is not. Raises SandboxError when a record cannot be read.
    """
    found: list[tuple[Record, ActNote]] = []
    for record in records_of(artoo_home / "undo", task_id):
        with suppress(ValidationError):
            found.append((record, ActNote.model_validate_json(record.manifest().note)))
    return tuple(found)


def outcome_at_end(artoo_home: Path, task_id: str) -> str | None:
    """Return what the end of the task would have reported of its apply; None if it applied nothing by itself.

    This tells a process that died right after its apply from a user who applied or discarded later.
    """
    acts = noted_acts(artoo_home, task_id)
    found = [note.outcome for record, note in acts if record.done and note.moment == "end"]
    return found[-1] if found else None


def applied_live(artoo_home: Path, task_id: str) -> tuple[str, ...]:
    """Return the printable paths that `--apply live` has applied during the task, each once."""
    acts = noted_acts(artoo_home, task_id)
    live = (note for record, note in acts if record.done and note.moment == "live")
    return tuple(dict.fromkeys(path for note in live for path in note.paths))


def took_effect(artoo_home: Path, task_id: str, digest: str | None = None) -> bool:
    """True if a change set of the task (None: any) was applied and not undone since."""
    acts = noted_acts(artoo_home, task_id)
    return any(record.done and digest in (None, note.digest) for record, note in acts)


def commit_of(artoo_home: Path, task_id: str, settlement: str) -> Record | None:
    """Return the undo record of one settlement; None if its commit did not begin, or was rolled back or undone.

    Raises SandboxError.
    """
    acts = noted_acts(artoo_home, task_id)
    return next((record for record, note in acts if note.settlement == settlement), None)
