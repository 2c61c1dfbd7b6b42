"""Moves paths from one recorded state to another: forward to apply, backward to undo. Each part may be repeated."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.world.exchange import Place, exchange, put_new
from artoo.world.files import Reach, copy_node, make_durable, parent_of, set_metadata, set_mode
from artoo.world.journal import Record, StateRecord, Step, record_bytes
from artoo.world.nodes import NodeState, at, digest_file, glance, read_state

_WORKING_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Move:
    """One path from `start` to `end`. `content` (on any file system) becomes what is at the path.

    `record` is the name of its act's record. `sha256` (hex) is that of the content that goes; None: not known.
    """

    root: str
    relative: str
    start: StateRecord | None
    end: StateRecord | None
    in_place: bool
    content: str | None
    record: str
    sha256: str | None = None

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
    content = record_bytes(step.source) if step.source is not None else None
    was = step.before_sha256
    return Move(step.root, step.relative, step.before, step.after, step.in_place, content, record.name, was)


def backward(step: Step, record: Record) -> Move:
    """The step taken back."""
    content = record.image(step.image) if step.image is not None else None
    was = step.after_sha256
    return Move(step.root, step.relative, step.after, step.restored, step.in_place, content, record.name, was)


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
    with Reach() as contents:
        _each(lambda move, reach: _put(move, reach, contents), moves)
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
    if not from_directory:
        _put_back_aside(move, reach)
    now = seen_at(reach, move.root, move.relative)
    if now is None or is_state(now, move.end):
        return
    if not is_state(now, move.start):
        raise _foreign(move)
    directory, name = reach.parent(move.root, move.relative)
    if from_directory:
        os.rmdir(name, dir_fd=directory)
    else:
        put_new((directory, name), (directory, move.aside))
        _retire_aside(move, (directory, name))


def _put_back_aside(move: Move, reach: Reach) -> None:
    """Ends a removal that a crash cut between its two steps."""
    try:
        directory, name = reach.parent(move.root, move.relative)
        if glance(directory, move.aside) is not None:
            _retire_aside(move, (directory, name))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


def _retire_aside(move: Move, place: Place) -> None:
    """What was taken aside goes if it is what was to go; else it gets its name back. Raises OSError (ESTALE)."""
    directory, name = place
    if _is_what_goes(move, directory, move.aside):
        os.unlink(move.aside, dir_fd=directory)
        return
    with suppress(FileExistsError):  # there is a newer one already: this one stays beside it
        put_new((directory, move.aside), (directory, name))
    raise _foreign(move)


def _is_what_goes(move: Move, directory: int, name: str) -> bool:
    """Whether this thing, which nobody reaches by its path any more, is what the act was agreed to take away."""
    if not is_state(glance(directory, name), move.start):
        return False
    if move.sha256 is None or move.start is None or move.start.node is not Node.FILE:
        return True
    try:
        return digest_file(directory, name) == move.sha256
    except PermissionError:  # its owner may not read it: identity, size and time must do
        return True


def _foreign(move: Move) -> OSError:
    return OSError(errno.ESTALE, "changed by somebody else at this moment", f"{move.root}/{move.relative}")


def _make_directory(move: Move, reach: Reach) -> None:
    if move.end is None or move.end.node is not Node.DIRECTORY or move.in_place:
        return
    directory, name = reach.parent(move.root, move.relative)
    with suppress(FileExistsError):
        os.mkdir(name, _WORKING_MODE, dir_fd=directory)


def _put(move: Move, reach: Reach, contents: Reach) -> None:
    """Renames the content into place; from another file system by way of a copy beside it."""
    if move.content is None or move.end is None:
        return
    try:
        content = contents.beside(move.content)
    except FileNotFoundError:
        content = None
    mine = None if content is None else glance(*content)
    if content is not None and mine is not None:  # else it was done before a crash
        _lay(move, mine, content, reach.parent(move.root, move.relative))


def _lay(move: Move, mine: NodeState, content: Place, target: Place) -> None:
    now = glance(*target)
    if is_state(now, move.end, in_place=move.in_place) and move.end is not None:
        os.unlink(content[1], dir_fd=content[0])  # exchanged before a crash: what is there now is what went
        return
    if now is None and (move.start is None or _swaps_kind(move)):
        _lay_new(move, content, target)
    elif is_state(now, move.start, in_place=move.in_place):
        _lay_over(move, mine, content, target)
    else:
        raise _foreign(move)


def _lay_new(move: Move, content: Place, target: Place) -> None:
    try:
        put_new(content, target)
    except FileExistsError as error:
        raise _foreign(move) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _lay_new(move, _copied_beside(move, content, target), target)
        os.unlink(content[1], dir_fd=content[0])


def _lay_over(move: Move, mine: NodeState, content: Place, target: Place) -> None:
    """What is there at the instant of the exchange is looked at afterwards: nobody can come in between."""
    try:
        exchange(content, target)
    except NotImplementedError:
        os.rename(content[1], target[1], src_dir_fd=content[0], dst_dir_fd=target[0])
        return
    except FileNotFoundError as error:
        raise _foreign(move) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _lay_copy_over(move, content, target)
        return
    if not _is_what_goes(move, *content):
        _give_back(move, mine, content, target)
        raise _foreign(move)
    os.unlink(content[1], dir_fd=content[0])


def _give_back(move: Move, mine: NodeState, content: Place, target: Place) -> None:
    """Somebody else's version gets its name again; if there is a newer one by now, that, and it stays beside it."""
    with suppress(FileNotFoundError):  # it was removed meanwhile: so be it
        exchange(content, target)
        out = glance(*content)
        if out is not None and out.inode != mine.inode:
            exchange(content, target)
            with suppress(FileExistsError):
                put_new(content, (target[0], move.aside))


def _lay_copy_over(move: Move, content: Place, target: Place) -> None:
    beside = _copied_beside(move, content, target)
    mine = glance(*beside)
    assert mine is not None
    try:
        _lay_over(move, mine, beside, target)
    except OSError:
        left = glance(*beside)
        if left is not None and left.inode == mine.inode:
            os.unlink(beside[1], dir_fd=beside[0])
        raise
    os.unlink(content[1], dir_fd=content[0])


def _copied_beside(move: Move, content: Place, target: Place) -> Place:
    assert move.end is not None
    with suppress(FileNotFoundError):  # of a crash
        os.unlink(move.aside, dir_fd=target[0])
    copy_node(*content, move.end, Path(at(target[0], move.aside)))
    return target[0], move.aside


def _finish(move: Move, reach: Reach) -> None:
    """Metadata that a rename does not bring along: of directories, and of things changed in place."""
    if move.end is None or not (move.in_place or move.end.node is Node.DIRECTORY):
        return
    directory, name = reach.parent(move.root, move.relative)
    if move.in_place and not is_state(glance(directory, name), move.end, in_place=True):
        raise _foreign(move)
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
