"""Moves paths from one recorded state to another: forward to apply, backward to undo. Each part may be repeated."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.world.files import Reach, copy_node, make_durable, parent_of, set_metadata, set_mode
from artoo.world.journal import Record, StateRecord, Step, record_bytes
from artoo.world.nodes import NodeState, glance, read_state

_WORKING_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Move:
    """One path from `start` to `end`. `content` (on any file system) becomes what is at the path."""

    root: str
    relative: str
    start: StateRecord | None
    end: StateRecord | None
    in_place: bool
    content: str | None

    @property
    def depth(self) -> int:
        return self.relative.count("/") + bool(self.relative)

    @property
    def parent(self) -> str:
        return self.relative.rpartition("/")[0]


def forward(step: Step) -> Move:
    """The step as it was meant."""
    content = record_bytes(step.source) if step.source is not None else None
    return Move(step.root, step.relative, step.before, step.after, step.in_place, content)


def backward(step: Step, record: Record) -> Move:
    """The step taken back."""
    content = os.fspath(record.image(step.image)) if step.image is not None else None
    return Move(step.root, step.relative, step.after, step.restored, step.in_place, content)


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


def is_ours(move: Move, reach: Reach) -> bool:
    """Whether what is at the path is one end of the move, or the nothing between two kinds of thing."""
    now = seen_at(reach, move.root, move.relative)
    if is_state(now, move.start, in_place=move.in_place) or is_state(now, move.end, in_place=move.in_place):
        return True
    return now is None and _swaps_kind(move)


def _swaps_kind(move: Move) -> bool:
    if move.start is None or move.end is None:
        return False
    return (move.start.node is Node.DIRECTORY) != (move.end.node is Node.DIRECTORY)


def converge(moves: Sequence[Move]) -> None:
    """Carries out all moves. Raises OSError (ESTALE: somebody else changed a path); then some are done, and all can
    be repeated or taken back."""
    _unlock_ancestors(moves)
    _each(_remove, sorted(moves, key=lambda one: -one.depth))
    _each(_make_directory, sorted(moves, key=lambda one: one.depth))
    _each(_put, moves)
    _each(_finish, sorted(moves, key=lambda one: -one.depth))
    make_durable(_parents(moves))


def _each(act: Callable[[Move, Reach], None], moves: Iterable[Move]) -> None:
    with Reach() as reach:
        for move in moves:
            act(move, reach)


def _remove(move: Move, reach: Reach) -> None:
    """Takes away what stands in the way: things that end as nothing, and changes between directory and other."""
    if move.start is None or move.in_place:
        return
    from_directory = move.start.node is Node.DIRECTORY
    to_directory = move.end is not None and move.end.node is Node.DIRECTORY
    if move.end is not None and from_directory == to_directory:
        return
    now = seen_at(reach, move.root, move.relative)
    if now is None or is_state(now, move.end):
        return
    if not is_state(now, move.start):
        raise _foreign(move)
    directory, name = reach.parent(move.root, move.relative)
    if from_directory:
        os.rmdir(name, dir_fd=directory)
    else:
        os.unlink(name, dir_fd=directory)


def _foreign(move: Move) -> OSError:
    return OSError(errno.ESTALE, "changed by somebody else at this moment", f"{move.root}/{move.relative}")


def _make_directory(move: Move, reach: Reach) -> None:
    if move.end is None or move.end.node is not Node.DIRECTORY or move.in_place:
        return
    directory, name = reach.parent(move.root, move.relative)
    with suppress(FileExistsError):
        os.mkdir(name, _WORKING_MODE, dir_fd=directory)


def _put(move: Move, reach: Reach) -> None:
    """Renames the content into place; from another file system by way of a copy beside it."""
    if move.content is None or move.end is None:
        return
    if not is_ours(move, reach):
        if not os.path.lexists(move.content):  # done before a crash, and changed since
            return
        raise _foreign(move)
    try:
        _rename(move.content, move.end, *reach.parent(move.root, move.relative))
    except FileNotFoundError:
        if os.path.lexists(move.content):  # otherwise it was done before a crash
            raise


def _rename(content: str, end: StateRecord, directory: int, name: str) -> None:
    try:
        os.rename(content, name, dst_dir_fd=directory)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _put_copy(Path(content), end, directory, name)


def _put_copy(content: Path, end: StateRecord, directory: int, name: str) -> None:
    beside = Path(f"/proc/self/fd/{directory}/.artoo-{content.parent.parent.name[-12:]}-{content.name}")
    source = os.open(content.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        copy_node(source, content.name, end, beside)
        os.rename(beside.name, name, src_dir_fd=directory, dst_dir_fd=directory)
        content.unlink()
    finally:
        os.close(source)


def _finish(move: Move, reach: Reach) -> None:
    """Metadata that a rename does not bring along: of directories, and of things changed in place."""
    if move.end is None or not (move.in_place or move.end.node is Node.DIRECTORY):
        return
    directory, name = reach.parent(move.root, move.relative)
    set_metadata(directory, name, move.end, times=move.end.node is not Node.DIRECTORY)


def directories_above(places: Iterable[Step | Move]) -> set[tuple[str, str]]:
    """All directories above the paths of steps or moves; a root itself is the empty path."""
    found: set[tuple[str, str]] = set()
    for place in places:
        relative = place.relative
        while relative:
            relative = relative.rpartition("/")[0]
            if (place.root, relative) in found:
                break
            found.add((place.root, relative))
    return found


def is_locked(now: NodeState | None) -> bool:
    """Whether this is a directory of ours whose own mode keeps us from changing what is in it."""
    if now is None or not now.is_directory or os.geteuid() == 0:
        return False
    return now.mode & 0o300 != 0o300 and now.uid == os.geteuid()


def _unlock_ancestors(moves: Iterable[Move]) -> None:
    """Gives us access to directories that lack it, as the command did for itself; their own move ends it."""
    _unlock(directories_above(moves))


def _unlock(directories: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Opens locked directories, outermost first; returns the modes that they had."""
    opened: dict[tuple[str, str], int] = {}
    for root, relative in sorted(directories) if os.geteuid() != 0 else ():
        now = now_at(root, relative)
        if now is not None and is_locked(now):
            with parent_of(root, relative) as (directory, name):
                set_mode(directory, name, now.mode | 0o700)
            opened[root, relative] = now.mode
    return opened


@contextmanager
def opened_up(steps: Iterable[Step]) -> Generator[dict[tuple[str, str], int], None, None]:
    """Access to everything above the steps. Gives the modes that were changed for it, and puts back those that
    still are as opened."""
    opened = _unlock(directories_above(steps))
    try:
        yield opened
    finally:
        for (root, relative), mode in sorted(opened.items(), reverse=True):
            now = now_at(root, relative)
            if now is not None and now.is_directory and now.mode == mode | 0o700:
                with parent_of(root, relative) as (directory, name):
                    set_mode(directory, name, mode)


def _parents(moves: Iterable[Move]) -> Generator[int]:
    """A descriptor of each directory that holds a path; not of those that this act removed or replaced."""
    for root, parent in sorted({(move.root, move.parent) for move in moves}):
        try:
            with parent_of(root, parent) as (directory, name):
                descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES):
                raise
            continue  # or it is not listable by its owner
        yield descriptor
