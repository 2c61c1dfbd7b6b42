"""How long before-images are kept, what can be undone, and what cannot."""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import UndoableTask
from artoo.contracts.errors import SandboxError
from artoo.workspace.commit.manifest import MANIFEST, UNDOING, Manifest, Record, all_records, exclusive
from artoo.workspace.git.act import forget

logger = logging.getLogger(__name__)

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long before-images are kept: whichever bound is reached first."""

    days: float = 30.0
    total_bytes: int = 4 << 30


def undoable(artoo_home: Path, keep: Keep) -> tuple[UndoableTask, ...]:
    """Return what can be undone and until when, oldest first. Blocking."""
    grouped: dict[str, list[tuple[Manifest, int]]] = defaultdict(list)
    for record in all_records(artoo_home / "undo"):
        with suppress(SandboxError, FileNotFoundError):  # damaged, or being undone at this moment
            if record.done:
                found = record.manifest(), _bytes_kept(record)
                grouped[record.task_id].append(found)
    found = [_summary(task_id, kept, keep) for task_id, kept in grouped.items()]
    return tuple(sorted(found, key=lambda one: one.last_at))


def _summary(task_id: str, found: list[tuple[Manifest, int]], keep: Keep) -> UndoableTask:
    last = max(manifest.created_at for manifest, _ in found)
    return UndoableTask(
        task_id=task_id,
        transactions=len(found),
        paths=len({step.path for manifest, _ in found for step in manifest.steps if not step.opens}),
        bytes_kept=sum(size for _, size in found),
        last_at=last,
        until=last + keep.days * _DAY_SECONDS,
    )


def unreadable(artoo_home: Path) -> tuple[str, ...]:
    """Return why records cannot be undone that are kept. Blocking."""
    found: list[str] = []
    for record in all_records(artoo_home / "undo"):
        if record.committed:
            problem = record.problem()
            if problem is not None and record.place.exists():  # else it was undone at this moment
                found.append(f"task {record.task_id}: {problem}")
    return tuple(found)


def prune(artoo_home: Path, keep: Keep, now: float | None = None) -> int:
    """Forget records that are too old, then the oldest while too many bytes are kept; return how many. Blocking.

    Never those of an interrupted apply or undo. Damaged records go by their age.
    """
    now = time.time() if now is None else now
    undo_home = artoo_home / "undo"
    if not undo_home.is_dir():
        return 0
    removed = 0
    with exclusive(undo_home):
        kept = [(_made_at(one), one, _bytes_kept(one)) for one in all_records(undo_home) if _may_go(one)]
        total = sum(size for _, _, size in kept)
        for made_at, record, size in sorted(kept, key=lambda one: one[0]):
            due = made_at < now - keep.days * _DAY_SECONDS
            too_much = total > keep.total_bytes and record.problem() is None
            if (due or too_much) and _forget(record):
                total -= size
                removed += 1
        for task in undo_home.iterdir():
            if task.is_dir() and not any(task.iterdir()):
                task.rmdir()
    return removed


def _may_go(record: Record) -> bool:
    """True if nothing is interrupted in it."""
    return record.done and not record.has(UNDOING)


def _forget(record: Record) -> bool:
    """Delete a record, and the refs by which git kept commits for its undo; return False if that was refused."""
    try:
        if record.problem() is None:
            for act in record.manifest().git:
                forget(act)
        record.forget()
    except (OSError, SandboxError) as error:
        logger.warning("the undo record %s cannot be deleted: %s", record.place, error)
        return False
    return True


def _made_at(record: Record) -> float:
    with suppress(SandboxError):
        return record.manifest().created_at
    return (record.place / MANIFEST).stat().st_mtime


def _bytes_kept(record: Record) -> int:
    """Return the bytes of all before-images of a record. Raises OSError."""
    total = 0
    for directory, _, names in os.walk(record.place):
        found = (os.path.join(directory, name) for name in names if directory != str(record.place))
        total += sum(os.lstat(one).st_size for one in found)
    return total
