"""The notes that settlement leaves in the undo records of a task: what was applied, and on whose word."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.settling import Settled
from artoo.workspace.commit import Record, records_of

Moment = Literal["end", "live", "later"]
"""When it was applied: at the end of the task, during the task (`--apply live`), or later."""


class ActNote(BaseModel):
    """The note of one commit. `settlement` is its id; `digest` that of the change set that was approved.

    `outcome` is what the task reports of it (JSON, `contracts.settling.Settled`); empty for a later apply.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    settlement: str
    moment: Moment
    digest: str = ""
    outcome: str = ""


def noted_acts(artoo_home: Path, task_id: str) -> tuple[tuple[Record, ActNote], ...]:
    """Return the undo records of a task with their notes, oldest first; interrupted commits are included.

    What was undone is not. Raises SandboxError when a record cannot be read.
    """
    found: list[tuple[Record, ActNote]] = []
    for record in records_of(artoo_home / "undo", task_id):
        if record.made_by_older_version or (manifest := record.manifest()).rest:
            continue
        with suppress(ValidationError):  # a note of another kind
            found.append((record, ActNote.model_validate_json(manifest.note)))
    return tuple(found)


def outcomes(artoo_home: Path, task_id: str, moment: Moment) -> tuple[Settled, ...]:
    """Return what the task itself applied at this moment, oldest first.

    At the end this tells a process that died right after its apply from a user who applied or discarded later.
    Raises SandboxError.
    """
    found: list[Settled] = []
    for record, note in noted_acts(artoo_home, task_id):
        if record.done and note.moment == moment:
            with suppress(ValidationError):
                found.append(Settled.model_validate_json(note.outcome))
    return tuple(found)


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
