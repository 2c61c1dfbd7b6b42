"""What the journals tell the next process of a task: which calls took effect, and what is the task's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.ports.sandbox import ActNote, TaskLedger
from artoo.world.journal import TaskPlace, records_of
from artoo.world.transaction import write_down


@dataclass(frozen=True, slots=True)
class Remembered:
    """`notes` by act, of acts that took effect; `ledger` as the task's last process had it."""

    notes: Mapping[str, ActNote]
    ledger: TaskLedger


def remembered(artoo_home: Path, task_id: str) -> Remembered:
    """Reads a task's journals, which nobody may be writing. Blocking; recovery must have run.

    Raises ConfigurationError when the person has taken the task back, SandboxError when an act of it is neither
    done nor undone, or a journal cannot be read.
    """
    undo_home = artoo_home / "undo"
    place = TaskPlace(undo_home, task_id)
    if place.undone:
        raise ConfigurationError(
            f"what task {task_id} changed was put back by `artoo undo`; it cannot go on from there: "
            "give the request again"
        )
    notes = {note.act: note.plain() for note in place.pruned_notes()}
    ledger = TaskLedger()
    for record in records_of(undo_home, task_id):
        if not record.committed:
            continue
        if not record.done:
            raise SandboxError(f"the act {record.name} is half done and could not be settled; start artoo again")
        journal = record.journal()
        write_down(journal.steps, record.left(), ledger)
        if journal.note is not None:
            notes[journal.note.act] = journal.note.plain()
    return Remembered(notes, ledger)
