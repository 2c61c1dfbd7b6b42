"""`artoo undo TASK`: puts back, file by file, what a task changed, where nobody has changed it since.

Which paths are put back is noted before the first of them: an undo that a crash or a full disk cut goes on there,
and knows what stands half way as its own. What was left stays on record, and can be put back later.
"""

from __future__ import annotations

import logging
import os
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from artoo.contracts.changes import Conflict, Node, UndoableTask, UndoReport, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.converge import converge, end_removal
from artoo.world.files import Reach, parent_of
from artoo.world.git_back import Repositories, is_packed, packed_refusal
from artoo.world.git_busy import wait_for_git
from artoo.world.git_keep import forget_directory, forget_names, is_kept_name
from artoo.world.journal import Journal, Record, StateRecord, Step, exclusive, record_bytes, records, records_of
from artoo.world.kept_notes import TaskPlace
from artoo.world.move import (
    Move,
    backward,
    has_time_of,
    held_directories,
    is_copied,
    is_separate,
    is_state,
    now_at,
    swaps_kind,
    without_way,
)
from artoo.world.nodes import NodeState, digest_file
from artoo.world.settle import finish_apply, is_unfinished
from artoo.world.taken import bytes_kept
from artoo.world.transaction import forget
from artoo.world.unlocked import Modes, keep_given, unlocked

logger = logging.getLogger(__name__)

_DAY_SECONDS = 86_400.0
_NOTICE = 3 * _DAY_SECONDS
"""Between the look that finds an act too old and the one that forgets it."""


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

    What git has of it goes back in one piece or not at all, and its objects stay (`git_back`).
    Raises SandboxError when nothing of the task is kept, or when the system refuses.
    """
    finish_apply(artoo_home, task_id)
    undo_home = artoo_home / "undo"
    with exclusive(undo_home):
        steps = [step for record in _kept(undo_home, task_id) for step in record.journal().steps]
    wait_for_git((step.root, step.relative) for step in steps)
    restored: dict[str, None] = {}
    refused: dict[str, Conflict] = {}
    with exclusive(undo_home):
        kept = _kept(undo_home, task_id)  # another process may have put some back meanwhile
        named = _named(kept)
        repositories = Repositories.of(kept)
        for record in reversed(kept):
            for path, reason in _undo_one(record, repositories).items():
                if reason is None:
                    restored[path] = None
                elif path not in refused:
                    part = "only its last change was put back: " if path in restored else ""
                    refused[path] = Conflict(path=path, reason=part + reason)
    refused = {path: conflict for path, conflict in refused.items() if not is_kept_name(path)}
    done = tuple(path for path in restored if path not in refused and not is_kept_name(path))
    return UndoReport(
        task_id=task_id,
        restored=done,
        refused=tuple(repositories.told(refused)),
        separate=tuple(path for path in done if path in named and is_separate(named[path])),
    )


def _kept(undo_home: Path, task_id: str) -> list[Record]:
    kept = [record for record in records_of(undo_home, task_id) if record.done]
    if not kept:
        raise SandboxError(f"nothing is kept of task {task_id}; `artoo undo --list` shows what can be undone")
    return kept


def _named(kept: Sequence[Record]) -> dict[str, Step]:
    """The paths that had other names before the first act on them."""
    first = {step.path: step for record in reversed(kept) for step in record.journal().steps}
    return {path: step for path, step in first.items() if step.had_names}


def finish_undo(record: Record) -> UndoReport:
    """Goes on with an undo that was cut, for the paths that it had begun with. The caller holds the lock.

    Raises SandboxError when the system refuses.
    """
    of_the_task = [one for one in records_of(record.place.parent.parent, record.task_id) if one.done]
    verdicts = _undo_one(record, Repositories.of(of_the_task), only=record.undoing())
    shown = {path: reason for path, reason in verdicts.items() if not is_kept_name(path)}
    refused = tuple(Conflict(path=path, reason=reason) for path, reason in shown.items() if reason is not None)
    restored = tuple(path for path, reason in shown.items() if reason is None)
    return UndoReport(task_id=record.task_id, restored=restored, refused=refused)


def _undo_one(
    record: Record, repositories: Repositories, only: Collection[str] | None = None
) -> dict[str, str | None]:
    """Takes one act back as far as possible, or `only` these paths: for each None, or why it was left. What stays
    for git's sake has no verdict, and is of the act no more. Raises SandboxError."""
    steps = [step for step in record.journal().steps if not repositories.stays(step)]
    asked = [step for step in steps if only is None or step.path in only]
    try:
        with unlocked(record, asked) as modes:
            verdicts = _undo_opened(record, asked, modes, repositories)
    except OSError as error:
        raise SandboxError(
            f"could not put everything back: {error}; repeat the undo when that is mended"
        ) from error
    repositories.forget_names(path for path, reason in verdicts.items() if reason is None)
    left = [step for step in steps if step.path not in verdicts or verdicts[step.path] is not None]
    left += repositories.name_lost(record, steps)
    try:
        if left:
            record.end_undo(left)
        else:
            _forget(record)
    except OSError as error:
        raise SandboxError(
            f"all was put back, but not noted ({error}); repeat the undo when that is mended"
        ) from error
    return verdicts


def _forget(record: Record) -> None:
    """With the names that an undo made for it and a crash kept from the journal, where no other act has some."""
    try:
        if named := record.named():
            task = records_of(record.place.parent.parent, record.task_id)
            others = [one for one in task if one.place != record.place and one.committed]
            owned = {step.path for one in others for step in one.journal().steps if is_kept_name(step.path)}
            for directory in named.difference(*(one.named() for one in others)):
                forget_directory(directory, owned)
    except SandboxError as error:
        logger.warning("names of %s may be left: %s", record.name, error)
    forget(record)


def _undo_opened(
    record: Record, steps: Sequence[Step], modes: Modes, repositories: Repositories
) -> dict[str, str | None]:
    begun = record.undoing()
    _end_removals([step for step in steps if step.path in begun], record)
    links = _own_links(steps)
    verdicts = {step.path: _refusal(step, record, modes, links) for step in steps}
    verdicts |= {step.path: None for step in steps if step.path in begun and _is_half_way(step, record)}
    moves = [_taken_back(step, record) for step in steps if verdicts[step.path] is None]
    lost = without_way(moves)
    verdicts |= {move.path: "the directory that held it is not there" for move in lost}
    repositories.hold(record, verdicts, steps)
    held = held_directories([move for move in moves if verdicts[move.path] is None])
    verdicts |= {move.path: "it holds files that are not the task's" for move in held}
    moves = [move for move in moves if verdicts[move.path] is None]
    moves = [move for move in moves if move.path in begun or not _is_restored(move)]
    if moves:
        record.begin_undo(begun | {move.path for move in moves})
    converge(moves)
    keep_given(modes, moves)
    return verdicts


def _end_removals(steps: Sequence[Step], record: Record) -> None:
    """What a cut undo had taken aside goes, or its directory would seem to hold what is not the task's."""
    with Reach() as reach:
        for step in steps:
            with suppress(OSError):  # then it is looked at as it stands
                end_removal(_taken_back(step, record), reach)


def _is_half_way(step: Step, record: Record) -> bool:
    """Whether a path of a begun undo stands where that left it: between two kinds of thing, its metadata half set,
    made but not finished, or put back by way of a copy."""
    move = backward(step, record)
    now = now_at(step.root, step.relative)
    if now is None:
        return step.before is not None and swaps_kind(move)
    if step.in_place or now.is_directory:
        return is_state(now, move.start, in_place=step.in_place) or is_state(now, move.end)
    return is_copied(move, now)


def _is_restored(move: Move) -> bool:
    """Whether an earlier, cut undo has done this already."""
    now = now_at(move.root, move.relative)
    if move.in_place or (now is not None and now.is_directory):
        return False
    return is_state(now, move.end)


def _own_links(steps: Sequence[Step]) -> set[str]:
    """Where (as system text) a link of the act's own stands: it goes, and nothing that was there is behind it."""
    mine = (step for step in steps if step.after is not None and step.after.node is Node.LINK)
    return {record_bytes(step.path) for step in mine if is_state(now_at(step.root, step.relative), step.after)}


def _refusal(
    step: Step, record: Record, modes: Mapping[tuple[str, str], int], links: Collection[str]
) -> str | None:
    """Why a path cannot be put back, None when it can. `modes` are those of directories opened for the look,
    `links` the act's own."""
    now = now_at(step.root, step.relative)
    if now is None and is_kept_name(step.path):  # git has packed it
        return None
    if now is None and is_packed(step):
        return packed_refusal(step)
    if now is not None and (step.root, step.relative) in modes:
        now = now._replace(mode=modes[step.root, step.relative])
    if now is None and _is_behind_a_link(step, links):
        return "a directory above it is a link now"
    if step.in_place:
        return _metadata_refusal(now, step, record)
    if _is_back(now, step) and not (now is not None and now.is_directory and step.after is None):
        return None
    if not (is_state(now, step.after) or _written_anew(now, step)) or not _same_content(step):
        return "it was changed since" if now is not None else "it was removed since"
    if now is not None and not now.is_directory and not _same_metadata(now, step.after):
        return "its mode, owner or attributes were changed since"
    return _image_refusal(step, record)


def _is_behind_a_link(step: Step, links: Collection[str]) -> bool:
    """Whether it may well be there: its directory was moved away, and a link stands in its place."""
    above, parts = record_bytes(step.root), record_bytes(step.relative).split("/")[:-1]
    for part in parts:
        above = f"{above}/{part}"
        if os.path.islink(above):
            return above not in links
    return False


def _is_back(now: NodeState | None, step: Step) -> bool:
    """Whether the old state is there: by its image, or the old file itself by another name that it had."""
    return is_state(now, step.restored) or is_state(now, step.before)


def _taken_back(step: Step, record: Record) -> Move:
    """The way back, from what is there now if that only was written anew."""
    move = backward(step, record)
    now = None if step.in_place else now_at(step.root, step.relative)
    anew = (_written_anew(now, step) and not is_copied(move, now)) or (now is None and is_packed(step))
    return move._replace(start=StateRecord.of(now)) if anew else move


def _written_anew(now: NodeState | None, step: Step) -> bool:
    """Whether it is another file or link with the same metadata, as `git status` leaves an index, and an undo from
    another file system a link: its content counts.
    """
    after = step.after
    if now is None or after is None or now.node is not after.node:
        return False
    if is_state(now, after) or _is_back(now, step):
        return False
    is_link = now.node is Node.LINK and printable_path(now.target) == after.target
    is_file = now.node is Node.FILE and step.after_sha256 is not None
    return (is_link or is_file) and _same_metadata(now, after)


def _same_content(step: Step) -> bool:
    """Whether what the act put there is still what is in it, whatever its times say."""
    if step.after is None or step.after_sha256 is None or step.after.node is not Node.FILE:
        return True
    try:
        with parent_of(step.root, step.relative) as (directory, name):
            return digest_file(directory, name) == step.after_sha256
    except PermissionError:  # its own mode keeps us out
        return True


def _metadata_refusal(now: NodeState | None, step: Step, record: Record) -> str | None:
    if now is None or step.before is None or not is_state(now, step.after, in_place=True):
        return "it was changed since"
    if not any(_same_metadata(now, state) for state in (step.after, step.before)):
        return "its mode, owner or attributes were changed since"
    only_time = _same_metadata(now, step.before) and _same_metadata(now, step.after) and not now.is_directory
    return "it was changed since" if only_time and not has_time_of(backward(step, record), now) else None


def _same_metadata(now: NodeState, state: StateRecord | None) -> bool:
    if state is None:
        return False
    return (now.mode, now.uid, now.gid, dict(now.xattrs)) == (state.mode, state.uid, state.gid, state.attributes())


def _image_refusal(step: Step, record: Record) -> str | None:
    """A linked image is the old file itself; whoever still had it open may have written to it since."""
    image = record.image(step)
    if image is None or step.before is None or step.before.node is not Node.FILE:
        return None
    try:
        seen = os.lstat(image)
    except FileNotFoundError:
        return "its old content is no longer kept"
    if (seen.st_size, seen.st_mtime_ns) != (step.before.size, step.before.mtime_ns):
        return "its kept old content was changed by a program that still had it open"
    return None


def undoable(artoo_home: Path, keep: Keep) -> tuple[UndoableTask, ...]:
    """What can be undone and until when, oldest first. Blocking."""
    grouped: dict[str, list[tuple[Journal, int]]] = defaultdict(list)
    for record in records(artoo_home / "undo"):
        with suppress(SandboxError, FileNotFoundError):  # damaged, or put back at this moment
            if record.done:
                found = record.journal(), bytes_kept(record)
                grouped[record.task_id].append(found)
    return tuple(_summary(task_id, kept, keep) for task_id, kept in grouped.items())


def damaged(artoo_home: Path) -> tuple[str, ...]:
    """What is kept and cannot be read, each with its cause: it hides nothing else. Blocking."""
    return tuple(
        cause
        for record in records(artoo_home / "undo")
        if record.committed and (cause := record.damage()) is not None and record.committed  # not just put back
    )


def _summary(task_id: str, found: Sequence[tuple[Journal, int]], keep: Keep) -> UndoableTask:
    last = max(journal.created_at for journal, _ in found)
    return UndoableTask(
        task_id=task_id,
        transactions=len(found),
        paths=len({step.path for journal, _ in found for step in journal.steps}),
        bytes_kept=sum(size for _, size in found),
        last_at=last,
        until=last + keep.days * _DAY_SECONDS,
    )


def prune(artoo_home: Path, keep: Keep, now: float | None = None) -> int:
    """Forgets acts that are too old, then the oldest ones while too many bytes are kept. Returns how many.

    None goes for its age that was not too old at an earlier look, days ago, too: a clock that is wrong for a while
    loses nothing. Of acts that had to go for room, the note stays until it is too old (`notes_of`). What cannot be
    read is kept, and what its view has not heard of.
    """
    now = time.time() if now is None else now
    oldest = now - keep.days * _DAY_SECONDS
    undo_home = artoo_home / "undo"
    if not undo_home.is_dir():
        return 0
    removed = 0
    with exclusive(undo_home):
        kept = [(record, bytes_kept(record)) for record in records(undo_home) if record.done]
        total = sum(size for _, size in kept)
        for record, size in kept:
            if (damage := record.damage()) is not None:
                logger.warning("%s; the other tasks are not concerned", damage)
                continue
            journal = record.journal()
            old = journal.created_at < oldest
            if not old:
                record.not_due()
            if total <= keep.total_bytes and not (old and record.is_due(now, _NOTICE)):
                continue
            if is_unfinished(artoo_home, journal.task_id):
                continue
            if not old:
                TaskPlace(undo_home, journal.task_id).keep_note(journal.note)
            forget_names(step.path for step in journal.steps if is_kept_name(step.path))
            _forget(record)
            total -= size
            removed += 1
        for task in undo_home.iterdir():
            if task.is_dir():
                TaskPlace(undo_home, unquote(task.name)).forget_if_empty(oldest)
    return removed
