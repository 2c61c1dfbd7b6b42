"""The notes of a task's acts: what is to be known of them after the task, also when their records are gone.

UNDO/TASK/pruned    notes of acts whose before-images are no longer kept, one JSON object a line
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import sync_directory
from artoo.world.journal import Note, directory_name, records_of

_PRUNED = "pruned"


class TaskPlace:
    """What is kept of a task beside the records of its acts. Its directory may not be there."""

    def __init__(self, undo_home: Path, task_id: str) -> None:
        self.place = undo_home / directory_name(task_id)

    def keep_note(self, note: Note | None) -> None:
        """Keeps the note of an act whose record is about to be forgotten: that it took effect stays known.

        A line that a crash or a full disk cut goes first: the record of its act was not forgotten. Raises OSError.
        """
        if note is None:
            return
        descriptor = os.open(self.place / _PRUNED, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with open(descriptor, "ab") as file:
            kept = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            os.ftruncate(descriptor, kept.rfind(b"\n") + 1)
            file.write(note.model_dump_json().encode("utf-8") + b"\n")
            file.flush()
            os.fsync(descriptor)
        sync_directory(self.place)

    def pruned_notes(self) -> list[Note]:
        """The notes that were kept, oldest first. Raises SandboxError when they cannot be read.

        What comes after the last newline was cut, as `keep_note` says.
        """
        path = self.place / _PRUNED
        try:
            lines = path.read_bytes().split(b"\n")[:-1]
            return [Note.model_validate_json(line) for line in lines]
        except FileNotFoundError:
            return []
        except (OSError, ValidationError) as error:
            raise SandboxError(f"{path} cannot be read: {error}; keep it and report this") from error

    def forget_if_empty(self, older_than: float) -> None:
        """Removes the directory when no act is in it and nothing in it is younger than `older_than` (epoch)."""
        inside = list(self.place.iterdir())
        if any(child.is_dir() or child.lstat().st_mtime >= older_than for child in inside):
            return
        for child in inside:
            child.unlink()
        self.place.rmdir()


def notes_of(undo_home: Path, task_id: str) -> list[Note]:
    """The notes of a task's acts that took effect and were not undone, oldest first.

    An act of which nothing is kept any more, because its before-images took too much room, is among them. Raises
    SandboxError when a journal or the kept notes cannot be read.
    """
    notes = (record.journal().note for record in records_of(undo_home, task_id) if record.done)
    return [*TaskPlace(undo_home, task_id).pruned_notes(), *(note for note in notes if note is not None)]
