"""What a start does first: an apply that a crash interrupted is taken back, an interrupted undo is completed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Conflict, RecoveryReport
from artoo.contracts.errors import SandboxError
from artoo.workspace.commit.manifest import Record, all_records, exclusive, printable
from artoo.workspace.commit.restore import changes_in, directories_of, roll_back, settle_record
from artoo.workspace.commit.slots import Slots
from artoo.workspace.commit.temporary_modes import lock_again, unlocked
from artoo.workspace.commit.undo import undo_record

logger = logging.getLogger(__name__)


class Recovered(NamedTuple):
    """What became of one record. `undone`: an apply was taken back; `finished`: an undo was completed."""

    undone: bool = False
    finished: bool = False
    conflicts: Sequence[Conflict] = ()


def recover(artoo_home: Path) -> RecoveryReport:
    """Take back every interrupted apply, complete interrupted undos, remove leftovers. Blocking; may be repeated.

    A record that cannot be recovered now is reported, and stays for the next try; it concerns no other. Raises
    SandboxError when the lock cannot be had.
    """
    undo_home = artoo_home / "undo"
    undone: list[str] = []
    finished: list[str] = []
    conflicts: list[Conflict] = []
    if undo_home.is_dir():
        with exclusive(undo_home):
            for record in reversed(all_records(undo_home)):  # the newest first, as its paths were changed last
                try:
                    found = recover_record(record)
                except (SandboxError, OSError) as error:
                    logger.warning("%s (%s); other tasks are not concerned", error, record.name)
                    conflicts.append(Conflict(path=printable(record.place), reason=str(error)))
                    continue
                conflicts += found.conflicts
                undone += [record.name] if found.undone else []
                finished += [record.name] if found.finished else []
    return RecoveryReport(finished=tuple(finished), undone=tuple(undone), conflicts=tuple(conflicts))


def recover_record(record: Record) -> Recovered:
    """Bring one record in order. The caller holds the lock. Raises SandboxError, OSError."""
    if record.made_by_older_version:
        if record.done_by_older_version:
            return Recovered()
        raise SandboxError(f"an apply by an older version of artoo was interrupted: {record.problem()}")
    if not record.committed:
        _clean(record)
        record.forget()
        return Recovered()
    if not record.done:
        return _take_back(record)
    if begun := record.undoing():
        verdicts = undo_record(record, only=begun)
        refused = [Conflict(path=path, reason=reason) for path, reason in verdicts.items() if reason is not None]
        return Recovered(finished=True, conflicts=refused)
    if record.has_leftovers:
        manifest = record.manifest()
        lock_again(record, {one.where: one.after.mode for one in manifest.steps if one.in_place and one.after})
        if not manifest.rest:
            _clean(record)
    return Recovered()


def _clean(record: Record) -> None:
    """Remove slots, of which nothing is needed: nothing was replaced yet, or everything was."""
    slots = Slots(record)
    with unlocked(record, slots.directories()):
        slots.clean()


def _take_back(record: Record) -> Recovered:
    manifest = record.manifest()
    with unlocked(record, directories_of(changes_in(manifest.steps))) as modes:
        conflicts, left = roll_back(record, manifest, modes)
    settle_record(record, manifest.model_copy(update={"git": (), "note": "", "rest": True}), left)
    return Recovered(undone=True, conflicts=conflicts)
