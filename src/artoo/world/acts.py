"""How calls ended whose changes are part of a view: one small file for each, beside the layer that holds them.

A note is written before its command's layer is marked as ended, and goes with the layer: folded, joined, dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import ActNote
from artoo.world.journal import Note


def keep_note(directory: Path, note: ActNote) -> None:
    """Raises OSError (disk full)."""
    directory.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(note.act.encode("utf-8", "surrogateescape")).hexdigest()
    written = Note(act=note.act, call=note.call, outcome=note.outcome)
    (directory / f"{name}.json").write_text(written.model_dump_json(), encoding="utf-8")


def move_notes(source: Path, target: Path) -> None:
    """Both on one disk. May be repeated. Raises OSError."""
    if source.is_dir():
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in sorted(source.iterdir()):
            file.rename(target / file.name)


def read_notes(directories: Iterable[Path]) -> dict[str, ActNote]:
    """All notes in those of the directories that there are, by act. Raises SandboxError when one is damaged."""
    found: dict[str, ActNote] = {}
    for directory in directories:
        for file in sorted(directory.iterdir()) if directory.is_dir() else ():
            try:
                note = Note.model_validate_json(file.read_bytes()).plain()
            except (OSError, ValidationError) as error:
                raise SandboxError(f"{file} cannot be read: {error}; keep it and report this") from error
            found[note.act] = note
    return found
