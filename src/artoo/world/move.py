"""What an act does to one path: from one recorded state to another, and whether the path is at one of these now."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from artoo.contracts.changes import Node, path_bytes
from artoo.world.files import Reach, parent_of
from artoo.world.journal import Record, StateRecord, Step, record_bytes
from artoo.world.mounts import MountTable
from artoo.world.nodes import NodeState, glance, open_directory, read_state, state_of

logger = logging.getLogger(__name__)


class Move(NamedTuple):
    """One path from `start` to `end`. `content` (on any file system) becomes what is at the path.

    `record` is the name of its act's record. `sha256` (hex) is that of the content that goes; None: not known.
    `keeps`: where what goes stays, as the before-image: at `content`'s own place, if it `swaps`; None: it is let
    go, or was kept ahead. `owed`: the place in a view that lent what goes, and gets it back. A tuple, because
    thousands are made at once.
    """

    root: str
    relative: str
    start: StateRecord | None
    end: StateRecord | None
    in_place: bool
    content: str | None
    record: str
    sha256: str | None = None
    keeps: str | None = None
    owed: str | None = None

    @property
    def swaps(self) -> bool:
        """Whether what goes and the content change places, and no more."""
        return self.keeps is not None and self.keeps == self.content

    @property
    def depth(self) -> int:
        return self.relative.count("/") + bool(self.relative)

    @property
    def parent(self) -> str:
        return self.relative.rpartition("/")[0]

    @property
    def path(self) -> str:
        return f"{self.root}/{self.relative}" if self.relative else self.root

    @property
    def aside(self) -> str:
        """A name beside it, for the moment in which what goes is looked at once more.

        The same after a crash, and no other step's: acts are one at a time, and names in a directory differ.
        """
        told = hashlib.sha256(f"{self.record}\0{self.path}".encode("utf-8", "surrogatepass")).hexdigest()
        return f".artoo-{told[:24]}"


def forward(step: Step, record: Record) -> Move:
    """The step as it was meant."""
    content, was = record.source(step), step.before_sha256
    keeps = record.image(step) if step.yields_image else None
    return Move(step.root, step.relative, step.before, step.after, step.in_place, content, record.name, was, keeps)


def backward(step: Step, record: Record) -> Move:
    """The step taken back, after its act was done. A file with other names comes back by its own name where that
    is kept and it is as it was; else, and where it was written to since, a copy comes back."""
    content, end = record.image(step), step.restored
    if step.had_names and step.image is not None:
        name = record.images.name_at(step.image)
        if _is_old_file(name, step):
            content, end = name, step.before
        elif is_state(now_at(step.root, step.relative), step.before):  # it is back
            content, end = None, step.before
    return Move(step.root, step.relative, step.after, end, step.in_place, content, record.name, step.after_sha256)


def _is_old_file(name: str, step: Step) -> bool:
    """Whether what is there is the file that was at the step, and nobody has changed it by another name."""
    try:
        seen = os.lstat(name)
    except FileNotFoundError:
        return False
    now, was = state_of(seen), step.before
    same = was is not None and (now.mode, now.uid, now.gid) == (was.mode, was.uid, was.gid)
    return same and is_state(now, was)


def is_separate(step: Step) -> bool:
    """Whether what came back is a file of its own, and other names that it had lead to another."""
    now = now_at(step.root, step.relative) if step.had_names else None
    return now is not None and step.before is not None and now.inode != step.before.inode


def returned(step: Step, record: Record, reach: Reach) -> Move | None:
    """The step taken back in the middle of its act: the view gets again what it lent.

    None: nothing is to be done, for it was not carried out or is taken back, or somebody else has changed it, or
    cannot be, and that is logged.
    """
    now = seen_at(reach, step.root, step.relative)
    if now is not None and not step.in_place and not now.is_directory and is_state(now, step.before):
        return None
    move = backward(step, record)
    if step.swaps:
        move = move._replace(keeps=move.content)
    elif step.lent:
        move = move._replace(owed=record.source(step))
    if is_ours(move, reach):
        if not _went_with_the_view(step, move):
            return move
        logger.warning("%s stays as it is: what was there went with the view of its task", move.path)
        return None
    return move._replace(start=StateRecord.of(now)) if is_copied(forward(step, record), now) else None


def _went_with_the_view(step: Step, move: Move) -> bool:
    """Whether a crash left the before-image where it came out of the exchange, in a view that is removed now."""
    if not step.yields_image or move.content is None or move.owed is None:
        return False
    return not os.path.lexists(move.content) and not os.path.lexists(move.owed)


def now_at(root: str, relative: str) -> NodeState | None:
    """What is at a path now; None when nothing is, or when a step of the path is missing or a link."""
    try:
        with parent_of(root, relative) as (directory, name):
            return read_state(directory, name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def seen_at(reach: Reach, root: str, relative: str) -> NodeState | None:
    """`now_at` for one path of many, without attributes."""
    try:
        return glance(*reach.parent(root, relative))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def is_state(now: NodeState | None, recorded: StateRecord | None, *, in_place: bool = False) -> bool:
    """Whether what is there is what was recorded.

    Directories and things changed in place count by kind (and identity, for files): their metadata may be half
    changed after a crash.
    """
    if now is None or recorded is None:
        return now is None and recorded is None
    if now.node is not recorded.node:
        return False
    if now.is_directory:
        return True
    same_thing = now.inode == recorded.inode
    if in_place:
        return same_thing and now.size == recorded.size
    return same_thing and (now.size, now.mtime_ns) == (recorded.size, recorded.mtime_ns)


def has_time_of(move: Move, now: NodeState) -> bool:
    """Whether its time is one that the act may change: a directory's is not, nor that of a newer content."""
    known = [end.mtime_ns for end in (move.start, move.end) if end is not None]
    return not now.is_directory and now.mtime_ns in known


def is_ours(move: Move, reach: Reach) -> bool:
    """Whether what is at the path is one end of the move, or the nothing between two kinds of thing."""
    now = seen_at(reach, move.root, move.relative)
    if is_state(now, move.start, in_place=move.in_place) or is_state(now, move.end, in_place=move.in_place):
        return True
    return swaps_kind(move) if now is None else is_copied(move, now)


def is_copied(move: Move, now: NodeState | None) -> bool:
    """Whether this is the content, which came by way of a copy: another file system gives it another inode."""
    if now is None or move.content is None or move.end is None or move.in_place or now.is_directory:
        return False
    same = now._replace(inode=move.end.inode)
    plain = replace(move.end, device=now.device, links=now.links, xattrs=())
    if not is_state(same, move.end) or StateRecord.of(same._replace(xattrs=())) != plain:
        return False
    try:
        return os.lstat(move.content).st_dev != now.device or _is_on_another_mount(move)
    except FileNotFoundError:  # it was let go as the last of it
        return True


def _is_on_another_mount(move: Move) -> bool:
    """Whether no rename brings the content to its path, though both are on one file system."""
    assert move.content is not None
    mounts = MountTable.read()
    return mounts.of(os.fsencode(move.content)) != mounts.of(path_bytes(move.path))


def swaps_kind(move: Move) -> bool:
    if move.start is None or move.end is None:
        return False
    return (move.start.node is Node.DIRECTORY) != (move.end.node is Node.DIRECTORY)


def without_way(moves: Sequence[Move]) -> list[Move]:
    """Those that put something where no directory is, and where none of the others makes one."""
    lost: list[Move] = []
    made: set[tuple[str, str]] = set()
    there: dict[tuple[str, str], bool] = {}
    for move in sorted(moves, key=lambda one: one.depth):
        if move.end is None:
            continue
        above = move.root, move.parent
        if move.relative and above not in made:
            if above not in there:
                now = now_at(*above)
                there[above] = now is not None and now.is_directory
            if not there[above]:
                lost.append(move)
                continue
        if move.end.node is Node.DIRECTORY:
            made.add((move.root, move.relative))
    return lost


def held_directories(moves: Iterable[Move]) -> list[Move]:
    """Those that would take away a directory in which is what does not go with it. Deepest first."""
    going: dict[tuple[str, str], set[str]] = defaultdict(set)
    held: list[Move] = []
    for move in sorted(moves, key=lambda one: -one.depth):
        if move.start is None or move.in_place or (move.end is not None and not swaps_kind(move)):
            continue
        if move.start.node is Node.DIRECTORY and not _only_holds(move, going[move.root, move.relative]):
            held.append(move)
        else:
            going[move.root, move.parent].add(move.relative.rpartition("/")[2])
    return held


def _only_holds(move: Move, going: Iterable[str]) -> bool:
    try:
        with parent_of(move.root, move.relative) as (directory, name):
            inside = open_directory(directory, name)
            try:
                return set(os.listdir(inside)) <= {record_bytes(name) for name in going}
            finally:
                os.close(inside)
    except (FileNotFoundError, NotADirectoryError):  # taken back before, and cut then
        return True
