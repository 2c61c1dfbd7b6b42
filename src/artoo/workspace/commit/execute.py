"""Carries paths from one state to another: forward to apply, backward to restore. Used by both.

Each path is looked at *after* it lost its name, when nobody can reach it by its path any more: what comes out of an
exchange, or was moved into its slot, must be the version that was seen before. If it is not, it gets its name back.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from artoo.contracts.changes import printable_path
from artoo.workspace.commit.atomic_rename import Place, exchange, put_new
from artoo.workspace.commit.dirfd_ops import Location, Walker, names_in, same_version, set_metadata
from artoo.workspace.commit.temporary_modes import Modes
from artoo.workspace.fs.stat import NodeState, glance

_WORKING_MODE = 0o700


class ChangedMeanwhile(OSError):
    """The user changed a path between check and replacement; their version is there. `filename` names it."""

    def __init__(self, shown: str) -> None:
        super().__init__(errno.ESTALE, "it was changed at this moment", shown)


class Move(NamedTuple):
    """One path from `start`, which is there now, to `end`. `shown` is its printable path.

    The content of an `end` that is a file or a link lies in the slot; afterwards what it replaced lies there, and
    what was removed. `in_place`: only metadata changes. A tuple, because thousands are made at once.
    """

    where: Location
    shown: str
    start: NodeState | None
    end: NodeState | None
    slot: Location
    in_place: bool = False

    @property
    def takes_away(self) -> bool:
        """True if what is there has to go before anything can come: it ends as nothing, or as another kind."""
        if self.start is None or self.in_place:
            return False
        return self.end is None or self.start.is_directory != self.end.is_directory

    @property
    def makes_directory(self) -> bool:
        if self.end is None or not self.end.is_directory or self.in_place:
            return False
        return self.start is None or not self.start.is_directory

    @property
    def puts(self) -> bool:
        """True if the content of its slot gets its name."""
        return self.end is not None and not self.end.is_directory and not self.in_place


def execute(moves: Sequence[Move], modes: Modes) -> None:
    """Carry out all moves. Raises OSError (`ChangedMeanwhile` too); then some are done, and can be moved back.

    `modes`: of directories that were made writable; one that a move gives a mode is taken out.
    """
    outermost_first = sorted(moves, key=lambda one: one.where.depth)
    deepest_first = outermost_first[::-1]
    _each(_take_away, (one for one in deepest_first if one.takes_away))
    _each(_make_directory, (one for one in outermost_first if one.makes_directory))
    _each(_put, (one for one in moves if one.puts))
    for move in _each(_set_metadata, (one for one in deepest_first if one.in_place or _is_directory(one.end))):
        modes.pop(move.where, None)


def _is_directory(state: NodeState | None) -> bool:
    return state is not None and state.is_directory


def _each(operation: Callable[[Move, Walker, Walker], None], moves: Iterable[Move]) -> list[Move]:
    """Do one operation for each move. Errors name the path: the system saw only names relative to descriptors."""
    done: list[Move] = []
    with Walker() as targets, Walker() as slots:
        for move in moves:
            try:
                operation(move, targets, slots)
            except ChangedMeanwhile:
                raise
            except OSError as error:
                raise OSError(error.errno, error.strerror, move.shown) from error
            done.append(move)
    return done


def _take_away(move: Move, targets: Walker, slots: Walker) -> None:
    """Remove an empty directory, or move a file or link into its slot and look at it there."""
    target = targets.place(move.where)
    if _is_directory(move.start):
        os.rmdir(target[1], dir_fd=target[0])
        return
    slot = slots.place(move.slot)
    try:
        put_new(target, slot)
    except FileNotFoundError as error:
        raise ChangedMeanwhile(move.shown) from error
    if not same_version(glance(*slot), move.start):
        with suppress(FileExistsError):  # there is a newer version already: this one stays in the slot
            put_new(slot, target)
        raise ChangedMeanwhile(move.shown)


def _make_directory(move: Move, targets: Walker, _: Walker) -> None:
    directory, name = targets.place(move.where)
    try:
        os.mkdir(name, _WORKING_MODE, dir_fd=directory)
    except FileExistsError as error:
        raise ChangedMeanwhile(move.shown) from error


def _put(move: Move, targets: Walker, slots: Walker) -> None:
    """Bring the content of the slot into place, and what it replaces into the slot."""
    slot = slots.place(move.slot)
    try:
        target = targets.place(move.where)
        if move.start is None or move.takes_away:
            put_new(slot, target)
        else:
            _replace(move, slot, target)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise ChangedMeanwhile(move.shown) from error


def _replace(move: Move, slot: Place, target: Place) -> None:
    if not same_version(glance(*target), move.start):
        raise ChangedMeanwhile(move.shown)
    new = glance(*slot)
    if not exchange(slot, target):
        os.rename(slot[1], target[1], src_dir_fd=slot[0], dst_dir_fd=target[0])
        return
    if same_version(glance(*slot), move.start):
        return
    with suppress(FileNotFoundError):  # the user removed it: so be it
        exchange(slot, target)
        if not same_version(glance(*slot), new):  # there is a newer version yet: that one keeps the name
            exchange(slot, target)
            with suppress(FileExistsError):
                put_new(slot, (target[0], f".artoo-saved-{os.path.basename(target[1])[:200]}"))
    raise ChangedMeanwhile(move.shown)


def _set_metadata(move: Move, targets: Walker, _: Walker) -> None:
    """Give it its final mode, owner, attributes and time. A directory that stays has a time of its own by now."""
    place = targets.place(move.where)
    if move.end is None:
        return
    if move.in_place and move.start is not None and not move.start.is_directory:
        now = glance(*place)
        if now is None or now.inode != move.start.inode:
            raise ChangedMeanwhile(move.shown)
    same_time = move.start is not None and move.in_place and move.start.mtime_ns == move.end.mtime_ns
    set_metadata(place, move.end, times=not same_time)


def to_sync(moves: Sequence[Move]) -> Iterator[Location]:
    """Yield what has to be synced after these moves: directories that changed, and paths with new metadata."""
    changed = {move.where.above for move in moves if not move.in_place}
    yield from changed
    for move in moves:
        if (move.in_place or _is_directory(move.end)) and move.where not in changed:
            yield move.where


def blocked(moves: Sequence[Move], there: Callable[[Location], NodeState | None]) -> dict[str, str]:
    """Return moves, by printable path, that cannot be carried out, with the reason.

    A path needs a directory above it, now or after the moves; a directory goes only if nothing stays in it.
    """
    found: dict[str, str] = {}
    made: set[Location] = set()
    gone = {move.where for move in moves if move.takes_away and _is_directory(move.start)}

    @cache
    def stays(where: Location) -> bool:
        return where not in gone and _is_directory(there(where))

    for move in sorted(moves, key=lambda one: one.where.depth):
        if move.end is None:
            continue
        above = move.where.above
        if move.where.relative and above not in made and not stays(above):
            found[move.shown] = "the directory that held it is not there"
        elif move.makes_directory:
            made.add(move.where)
    return found | _held([move for move in moves if move.shown not in found])


def _held(moves: Sequence[Move]) -> dict[str, str]:
    """Return moves that would remove a directory in which something stays."""
    going: dict[Location, set[str]] = defaultdict(set)
    found: dict[str, str] = {}
    with Walker() as walker:
        for move in sorted((one for one in moves if one.takes_away), key=lambda one: -one.where.depth):
            if _is_directory(move.start) and (left := names_in(walker, move.where) - going[move.where]):
                found[move.shown] = f"it holds {printable_path(os.fsencode(min(left)))}, which is not the task's"
            else:
                going[move.where.above].add(move.where.name)
    return found
