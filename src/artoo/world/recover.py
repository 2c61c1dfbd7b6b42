"""What a start does first: acts that a crash cut are finished or undone, views stand at a command's boundary."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path

from artoo.contracts.changes import Conflict, RecoveryReport, UndoReport
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import SandboxError
from artoo.world.boundary import views_to_boundary
from artoo.world.converge import converge, end_returns, give_names_back
from artoo.world.files import Reach
from artoo.world.journal import Journal, Record, Step, exclusive, records
from artoo.world.move import Move, backward, forward, is_ours, is_state, now_at
from artoo.world.nodes import state_of
from artoo.world.pending import SettledRecord, note_settled
from artoo.world.prepare import remove_landings, tidy_landings
from artoo.world.remove import remove_tree
from artoo.world.settle import finish_cut
from artoo.world.stage import memory_stage_home, remove_orphans
from artoo.world.taken import directories, take, tidy
from artoo.world.transaction import bring_back, forget_but
from artoo.world.undo import finish_undo
from artoo.world.unlocked import Modes, keep_given, lock_again, unlocked
from artoo.world.view_place import ViewInUse, ViewPlace

_LISTED = 1_000

logger = logging.getLogger(__name__)


def recover(artoo_home: Path) -> RecoveryReport:
    """Finishes or undoes every cut act, finishes cut undos and removes what dead processes left. Blocking; safe to
    repeat.

    An act that can be neither finished nor undone now is logged, and its journal stays for the next try: it
    concerns no other, and its own task's view cannot be settled before. Raises SandboxError when the lock cannot be
    had.
    """
    undo_home = artoo_home / "undo"
    finished: list[str] = []
    undone: list[str] = []
    conflicts: list[Conflict] = []
    stuck: set[str] = set()
    if undo_home.is_dir():
        with exclusive(undo_home):
            for record in list(records(undo_home)):
                try:
                    cut, found = _recovered(record, artoo_home)
                except (SandboxError, OSError) as error:
                    logger.warning("%s (%s); the other tasks are not concerned", error, record.name)
                    stuck.add(record.task_id)
                    continue
                conflicts += found
                if cut:
                    (finished if record.done else undone).append(record.name)
    finished += _finish_views(artoo_home, stuck)
    for stage_home in (artoo_home / "stage", memory_stage_home()):
        remove_orphans(stage_home)
    views_to_boundary(artoo_home)
    return RecoveryReport(finished=tuple(finished), undone=tuple(undone), conflicts=tuple(conflicts))


def _recovered(record: Record, artoo_home: Path) -> tuple[bool, Sequence[Conflict]]:
    """Whether the record was of something cut, and what stood in the way. Raises SandboxError, OSError."""
    if not record.committed:
        remove_landings(record.landings())
        remove_tree(record.place)
        return False, ()
    if not record.done:
        return True, _settle(record)
    tidy_landings(record)
    if not record.is_undoing:
        lock_again(record)
        return False, ()
    report = finish_undo(record)
    _note_undone(artoo_home / "views", report)
    return True, report.refused


def _note_undone(views: Path, report: UndoReport) -> None:
    """As of an undo that came to its end by itself."""
    line = SettledRecord(
        at=time.time(),
        task_id=report.task_id,
        what="undone",
        by=PERSON,
        count=len(report.restored),
        paths=report.restored[:_LISTED],
        left=len(report.refused),
    )
    try:
        views.mkdir(mode=0o700, parents=True, exist_ok=True)
        note_settled(views, line)
    except OSError as error:
        logger.warning("task %s is put back; no room to note it: %s", report.task_id, error)


def _finish_views(artoo_home: Path, stuck: Container[str]) -> list[str]:
    """Ends applies that were cut and removes what is left of settled views. Views at work are left alone; of tasks
    that are `stuck` the cause was said."""
    finished: list[str] = []
    views = artoo_home / "views"
    for child in sorted(views.iterdir()) if views.is_dir() else ():
        place = ViewPlace(child)
        if not child.is_dir():
            continue
        try:
            with place.locked():
                if not place.exists:
                    place.remove()
                elif finish_cut(place, artoo_home):
                    finished.append(f"{place.task_id} (its view)")
        except ViewInUse:
            continue
        except (SandboxError, OSError) as error:
            if place.task_id in stuck:
                continue
            logger.warning("the view of task %s is left as it is: %s", place.task_id, error)
    return finished


def _settle(record: Record) -> list[Conflict]:
    """Forward if every path is ours and every content still there, else back: also if that had begun. Returns what
    stood in the way."""
    journal = record.journal()
    steps = journal.steps
    take(record, journal)
    with unlocked(record, steps, lenders=True) as modes:
        conflicts, rest = _settle_unlocked(record, journal, modes)
    if rest is not None:
        forget_but(record, rest)
        return conflicts
    record.mark_done()  # when nothing is open any more: an act that is done is not looked at again
    tidy_landings(record)
    tidy(record, steps)
    return conflicts


def _settle_unlocked(record: Record, journal: Journal, modes: Modes) -> tuple[list[Conflict], list[Step] | None]:
    """What stood in the way, and what has no place to come back to; None: it went forward."""
    steps = journal.steps
    end_returns(backward(step, record) for step in steps)
    moves = [forward(step, record) for step in steps]
    give_names_back(moves)
    with Reach() as reach:
        foreign = [
            not is_ours(move, reach) and not (record.is_returning and is_ours(backward(step, record), reach))
            for step, move in zip(steps, moves, strict=True)
        ]
    conflicts = [
        Conflict(path=step.path, reason="it was changed after the crash; your version stays")
        for step, changed in zip(steps, foreign, strict=True)
        if changed
    ]
    lost = any(_content_lost(move) or _image_lost(step, record) for step, move in zip(steps, moves, strict=True))
    if not (record.is_returning or conflicts or lost):
        try:
            converge(moves, beside=directories(record, journal))
        except OSError:
            conflicts = []
        else:
            keep_given(modes, moves)
            return conflicts, None
    rest = bring_back(record, steps, modes)
    known = {conflict.path for conflict in conflicts}
    reason = "something else is where it was; `artoo undo` brings it back when that is gone"
    return conflicts + [Conflict(path=one.path, reason=reason) for one in rest if one.path not in known], rest


def _image_lost(step: Step, record: Record) -> bool:
    """Whether what is to go is kept nowhere else: it came back from its image when the act was taken back."""
    image = record.image(step)
    if image is None or step.yields_image or os.path.lexists(image):
        return False
    return not is_state(now_at(step.root, step.relative), step.after)


def _content_lost(move: Move) -> bool:
    """Whether a path is not yet as it should be, and what should be there is gone: also where something else lies
    at its place, in a view that somebody has made anew."""
    if move.content is None:
        return False
    with suppress(FileNotFoundError, NotADirectoryError):
        if is_state(state_of(os.lstat(move.content)), move.end):
            return False
    return not is_state(now_at(move.root, move.relative), move.end)
