"""`artoo undo TASK`: puts back, file by file, what a task changed, where nobody has changed it since."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from artoo.contracts.changes import Conflict, Node, UndoableTask, UndoReport
from artoo.contracts.errors import SandboxError
from artoo.world.converge import converge, opened_up
from artoo.world.files import parent_of
from artoo.world.git_keep import forget_names, is_kept_name
from artoo.world.journal import (
    Record,
    StateRecord,
    Step,
    TaskPlace,
    exclusive,
    records,
    records_of,
)
from artoo.world.move import Move, backward, held_directories, is_state, now_at
from artoo.world.nodes import NodeState, digest_file
from artoo.world.remove import remove_tree

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long before-images are kept: whichever bound is reached first."""

    days: float = 30.0
    total_bytes: int = 4 << 30


def acted(artoo_home: Path) -> list[str]:
    """The ids of all tasks of which acts are kept."""
    undo_home = artoo_home / "undo"
    return [unquote(task.name) for task in undo_home.iterdir() if task.is_dir()] if undo_home.is_dir() else []


def undo(artoo_home: Path, task_id: str) -> UndoReport:
    """Puts back what the task changed, newest act first. Blocking; may be repeated, also after a crash.

    Raises SandboxError when nothing of the task is kept, or when the system refuses.
    """
    undo_home = artoo_home / "undo"
    kept = [record for record in records_of(undo_home, task_id) if record.done]
    if not kept:
        raise SandboxError(f"nothing is kept of task {task_id}; `artoo undo --list` shows what can be undone")
    restored: dict[str, None] = {}
    refused: dict[str, Conflict] = {}
    with exclusive(undo_home):
        for record in reversed(kept):
            for path, reason in _undo_one(record).items():
                if reason is None:
                    restored[path] = None
                else:
                    refused.setdefault(path, Conflict(path=path, reason=reason))
    forget_names(path for path in restored if is_kept_name(path))
    refused = {path: conflict for path, conflict in refused.items() if not is_kept_name(path)}
    done = tuple(path for path in restored if path not in refused and not is_kept_name(path))
    return UndoReport(task_id=task_id, restored=done, refused=tuple(refused.values()))


def _undo_one(record: Record) -> dict[str, str | None]:
    """Takes one act back as far as possible: for each path None, or why it was left."""
    steps = record.journal().steps
    with opened_up(steps) as modes:
        return _undo_opened(record, steps, modes)


def _undo_opened(
    record: Record, steps: Sequence[Step], modes: Mapping[tuple[str, str], int]
) -> dict[str, str | None]:
    verdicts = {step.path: _refusal(step, record, modes) for step in steps}
    moves = [_taken_back(step, record) for step in steps if verdicts[step.path] is None]
    held = held_directories(moves)
    verdicts |= {move.path: "it holds files that are not the task's" for move in held}
    try:
        converge([move for move in moves if move not in held and not _is_restored(move)])
    except OSError as error:
        raise SandboxError(
            f"could not put everything back: {error}; repeat the undo when that is mended"
        ) from error
    if all(reason is None for reason in verdicts.values()):
        remove_tree(record.place)
    return verdicts


def _is_restored(move: Move) -> bool:
    """Whether an earlier, cut undo has done this already."""
    now = now_at(move.root, move.relative)
    if move.in_place or (now is not None and now.is_directory):
        return False
    return is_state(now, move.end)


def _refusal(step: Step, record: Record, modes: Mapping[tuple[str, str], int]) -> str | None:
    """Why a path cannot be put back, None when it can. `modes` are those of directories opened for the look."""
    now = now_at(step.root, step.relative)
    if now is None and is_kept_name(step.path):  # git has packed it
        return None
    if now is not None and (step.root, step.relative) in modes:
        now = now._replace(mode=modes[step.root, step.relative])
    if step.in_place:
        return _metadata_refusal(now, step)
    if is_state(now, step.restored) and not (now is not None and now.is_directory and step.after is None):
        return None
    if not (is_state(now, step.after) or _written_anew(now, step)) or not _same_content(step):
        return "it was changed since" if now is not None else "it was removed since"
    if step.after is None and not _parent_exists(step):
        return None if _parent_comes_back(step, record) else "the directory that held it is gone"
    return _image_refusal(step, record)


def _taken_back(step: Step, record: Record) -> Move:
    """The way back, from what is there now if that only was written anew."""
    move = backward(step, record)
    now = None if step.in_place else now_at(step.root, step.relative)
    return move._replace(start=StateRecord.of(now)) if _written_anew(now, step) else move


def _written_anew(now: NodeState | None, step: Step) -> bool:
    """Whether it is another file with the same metadata, as `git status` leaves an index: its content counts."""
    if now is None or step.after is None or step.after_sha256 is None or is_state(now, step.after):
        return False
    return now.node is step.after.node is Node.FILE and _same_metadata(now, step.after)


def _same_content(step: Step) -> bool:
    """Whether what the act put there is still what is in it, whatever its times say."""
    if step.after is None or step.after_sha256 is None or step.after.node is not Node.FILE:
        return True
    try:
        with parent_of(step.root, step.relative) as (directory, name):
            return digest_file(directory, name) == step.after_sha256
    except PermissionError:  # its own mode keeps us out
        return True


def _metadata_refusal(now: NodeState | None, step: Step) -> str | None:
    wanted = (step.after, step.before)
    if now is None or not is_state(now, step.after, in_place=True):
        return "it was changed since"
    return None if any(_same_metadata(now, state) for state in wanted) else "its mode or owner was changed since"


def _same_metadata(now: NodeState, state: StateRecord | None) -> bool:
    if state is None:
        return False
    return (now.mode, now.uid, now.gid, dict(now.xattrs)) == (state.mode, state.uid, state.gid, state.attributes())


def _image_refusal(step: Step, record: Record) -> str | None:
    """A linked image is the old file itself; whoever still had it open may have written to it since."""
    if step.image is None or step.before is None or step.before.node is not Node.FILE:
        return None
    try:
        seen = os.lstat(record.image(step.image))
    except FileNotFoundError:
        return "its old content is no longer kept"
    if (seen.st_size, seen.st_mtime_ns) != (step.before.size, step.before.mtime_ns):
        return "its kept old content was changed by a program that still had it open"
    return None


def _parent_exists(step: Step) -> bool:
    parent = now_at(step.root, step.relative.rpartition("/")[0])
    return parent is not None and parent.is_directory


def _parent_comes_back(step: Step, record: Record) -> bool:
    """Whether the same act deleted the directory above, so that taking it back makes it again."""
    parent = step.relative.rpartition("/")[0]
    return any(
        other.root == step.root and other.relative == parent and other.restored is not None
        for other in record.journal().steps
    )


def undoable(artoo_home: Path, keep: Keep) -> tuple[UndoableTask, ...]:
    """What can be undone and until when, oldest first. Blocking."""
    grouped: dict[str, list[Record]] = defaultdict(list)
    for record in records(artoo_home / "undo"):
        if record.done and record.damage() is None:
            grouped[record.task_id].append(record)
    return tuple(_summary(task_id, found, keep) for task_id, found in grouped.items())


def damaged(artoo_home: Path) -> tuple[str, ...]:
    """What is kept and cannot be read, each with its cause: it hides nothing else. Blocking."""
    return tuple(
        cause
        for record in records(artoo_home / "undo")
        if record.committed and (cause := record.damage()) is not None
    )


def _summary(task_id: str, found: Sequence[Record], keep: Keep) -> UndoableTask:
    journals = [record.journal() for record in found]
    last = max(journal.created_at for journal in journals)
    return UndoableTask(
        task_id=task_id,
        transactions=len(found),
        paths=len({step.path for journal in journals for step in journal.steps}),
        bytes_kept=sum(kept_bytes(record) for record in found),
        last_at=last,
        until=last + keep.days * _DAY_SECONDS,
    )


def kept_bytes(record: Record) -> int:
    """Bytes of before-images that a record holds."""
    place = record.place / "before"
    return sum(image.lstat().st_size for image in place.iterdir()) if place.is_dir() else 0


def prune(artoo_home: Path, keep: Keep, now: float | None = None) -> int:
    """Forgets acts that are too old, then the oldest ones while too many bytes are kept. Returns how many.

    Of acts that had to go for room, the note stays until it is too old (`notes_of`).
    """
    oldest = (time.time() if now is None else now) - keep.days * _DAY_SECONDS
    undo_home = artoo_home / "undo"
    if not undo_home.is_dir():
        return 0
    removed = 0
    with exclusive(undo_home):
        kept = [(record, kept_bytes(record)) for record in records(undo_home) if record.done]
        total = sum(size for _, size in kept)
        for record, size in kept:
            journal = record.journal()
            old = journal.created_at < oldest
            if not old and total <= keep.total_bytes:
                continue
            if not old:
                TaskPlace(undo_home, journal.task_id).keep_note(journal.note)
            forget_names(step.path for step in journal.steps if is_kept_name(step.path))
            remove_tree(record.place)
            total -= size
            removed += 1
        for task in undo_home.iterdir():
            if task.is_dir():
                TaskPlace(undo_home, unquote(task.name)).forget_if_empty(oldest)
    return removed
