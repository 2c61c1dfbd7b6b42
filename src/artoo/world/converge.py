"""Moves paths from one recorded state to another: forward to apply, backward to undo. Each part may be repeated."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.world.exchange import Place, exchange, put_new
from artoo.world.files import (
    Reach,
    copy_node,
    keep_image,
    linked,
    make_durable,
    parent_of,
    set_metadata,
)
from artoo.world.move import Move, has_time_of, is_copied, is_state, seen_at, swaps_kind
from artoo.world.nodes import NodeState, at, digest_file, glance
from artoo.world.unlocked import directories_above, unlock

_WORKING_MODE = 0o700


def converge(moves: Sequence[Move], *, anew: bool = False, beside: Iterable[Path] = ()) -> None:
    """Carries out all moves. Raises OSError (ESTALE: somebody else changed a path); then some are done, and all can
    be repeated or taken back.

    `anew`: none of it was done before, so an exchange needs no look ahead: what comes out of it is looked at.
    `beside`: directories that are made durable with theirs.
    """
    _unlock_ancestors(moves)
    _each(_give_back, moves)
    outermost_first = sorted(moves, key=lambda one: one.depth)
    deepest_first = outermost_first[::-1]
    _each(_remove, deepest_first)
    _each(_make_directory, outermost_first)
    with Reach() as contents, Reach() as images:
        _each(lambda move, reach: _put(move, reach, contents, images, anew), moves)
    _each(_finish, deepest_first)
    make_durable(chain(_opened(beside), _images(moves), _parents(moves)))


def _each(act: Callable[[Move, Reach], None], moves: Iterable[Move]) -> None:
    """What fails is said of the path: the names in system calls are relative to descriptors, or artoo's own."""
    with Reach() as reach:
        for move in moves:
            try:
                act(move, reach)
            except OSError as error:
                raise OSError(error.errno, error.strerror, move.path) from error


def _give_back(move: Move, reach: Reach) -> None:
    """The view has again what it lent, before that goes from where it was put; the before-image is at its place."""
    if move.owed is None or not os.path.isdir(os.path.dirname(move.owed)):  # or somebody has removed the view
        return
    with Reach() as lender, Reach() as images:
        view = lender.beside(move.owed)
        there = glance(*view)
        if move.content is not None and _came_out(move, there):  # cut right after the exchange
            image = None if os.path.lexists(move.content) else images.beside(move.content)
            _let_go(view, image)
            there = None
        if there is None and is_state(seen_at(reach, move.root, move.relative), move.start):
            _lend_again(move, reach.parent(move.root, move.relative), view)


def _came_out(move: Move, there: NodeState | None) -> bool:
    """Whether in the view's place lies what was exchanged for its file; of that the image may be a copy."""
    if there is None or move.end is None or is_state(there, move.start):
        return False
    return (there.node, there.size, there.mtime_ns) == (move.end.node, move.end.size, move.end.mtime_ns)


def _lend_again(move: Move, place: Place, view: Place) -> None:
    assert move.start is not None
    assert move.owed is not None
    if linked(*place, move.owed):
        return
    beside = Path(at(view[0], move.aside))
    copy_node(*place, move.start, beside)
    os.rename(beside.name, view[1], src_dir_fd=view[0], dst_dir_fd=view[0])


def _remove(move: Move, reach: Reach) -> None:
    """Takes away what stands in the way: things that end as nothing, and changes between directory and other."""
    if move.start is None or move.in_place:
        return
    from_directory = move.start.node is Node.DIRECTORY
    to_directory = move.end is not None and move.end.node is Node.DIRECTORY
    if move.end is not None and from_directory == to_directory:
        return
    if not from_directory:
        end_removal(move, reach)
    now = seen_at(reach, move.root, move.relative)
    if now is None or is_state(now, move.end) or is_copied(move, now):
        return
    if not is_state(now, move.start):
        raise _foreign(move)
    directory, name = reach.parent(move.root, move.relative)
    if from_directory:
        os.rmdir(name, dir_fd=directory)
    else:
        put_new((directory, name), (directory, move.aside))
        _retire_aside(move, (directory, name))


def end_returns(moves: Iterable[Move]) -> None:
    """What a way back that a crash cut had taken aside goes, or its directory would seem to hold what is not the
    act's. Anything else of that name (a half made copy) stays."""
    with Reach() as reach:
        for move in moves:
            if not _takes_away(move):
                continue
            with suppress(OSError):  # then it is looked at as it stands
                directory, _ = reach.parent(move.root, move.relative)
                if _is_what_goes(move, directory, move.aside):
                    os.unlink(move.aside, dir_fd=directory)


def end_removal(move: Move, reach: Reach) -> None:
    """Ends a removal that a crash cut between its two steps. Raises OSError (ESTALE)."""
    if not _takes_away(move):
        return
    try:
        directory, name = reach.parent(move.root, move.relative)
        if glance(directory, move.aside) is not None:
            _retire_aside(move, (directory, name))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


def _takes_away(move: Move) -> bool:
    """Whether it takes something aside first, to look at it once more: no directory, and nothing comes for it."""
    is_thing = move.start is not None and move.start.node is not Node.DIRECTORY
    return is_thing and (move.end is None or swaps_kind(move))


def forget_aside(move: Move, reach: Reach) -> None:
    """Of a removal that a crash cut between its two steps, for who takes it back: the image is the same file."""
    removed = move.start is None or swaps_kind(move)
    if not removed or move.end is None or move.content is None or not os.path.lexists(move.content):
        return
    try:
        directory, _ = reach.parent(move.root, move.relative)
        if is_state(glance(directory, move.aside), move.end):
            os.unlink(move.aside, dir_fd=directory)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
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
        return digest_file(directory, name, move.start.size) == move.sha256
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


def _put(move: Move, reach: Reach, contents: Reach, images: Reach, anew: bool) -> None:
    """Renames the content into place; from another file system by way of a copy beside it."""
    if move.content is None or move.end is None:
        return
    target = reach.parent(move.root, move.relative)
    try:
        content = contents.beside(move.content)
        kept = None if move.keeps is None else content if move.swaps else images.beside(move.keeps)
        if anew and kept is not None:
            _lay_over(move, move.end.inode, content, target, kept)
        else:
            _lay(move, content, target, kept)
    except FileNotFoundError as error:
        if os.path.lexists(move.content) or is_state(glance(*target), move.start):
            raise _foreign(move) from error
        # else it was done before a crash


def _lay(move: Move, content: Place, target: Place, kept: Place | None) -> None:
    assert move.end is not None
    now = glance(*target)
    if now is not None and is_state(now, move.end, in_place=move.in_place):
        _after_a_crash(move, now, content, target, kept)
    elif now is None and (move.start is None or swaps_kind(move)):
        _lay_new(move, content, target)
    elif is_state(now, move.start, in_place=move.in_place):
        _lay_over(move, move.end.inode, content, target, kept)
    elif is_copied(move, now):
        _after_a_copy(move, content, target)
    else:
        raise _foreign(move)


def _after_a_crash(move: Move, now: NodeState, content: Place, target: Place, kept: Place | None) -> None:
    """It is in place: what is still where it came from is its other name or a copy, or what came out of the
    exchange."""
    left = glance(*content)
    if left is not None and (left.inode == now.inode or _is_copy(move, left)):
        os.unlink(content[1], dir_fd=content[0])
    elif left is not None:
        _look_at_what_came_out(move, now.inode, content, target, kept)


def _is_copy(move: Move, left: NodeState) -> bool:
    """Whether it is what the move brings, in another file: a before-image of what had never gone."""
    assert move.end is not None
    return not is_state(left, move.start) and is_state(left._replace(inode=move.end.inode), move.end)


def _after_a_copy(move: Move, content: Place, target: Place) -> None:
    """What a crash left of a content that came from another file system: what it was exchanged with, and itself."""
    if move.start is not None and is_state(glance(target[0], move.aside), move.start):
        _retire_aside(move, target)
    with suppress(FileNotFoundError):
        os.unlink(content[1], dir_fd=content[0])


def _let_go(gone: Place, kept: Place | None) -> None:
    """What went has its place among the before-images, or none."""
    if kept is None:
        os.unlink(gone[1], dir_fd=gone[0])
    elif kept != gone:
        os.rename(gone[1], kept[1], src_dir_fd=gone[0], dst_dir_fd=kept[0])


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


def _lay_over(move: Move, inode: int, content: Place, target: Place, kept: Place | None) -> None:
    """`inode` is that of the content."""
    try:
        exchange(content, target)
    except NotImplementedError:
        if move.swaps:  # it was tried before the act that it can be done
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP)) from None
        if not is_state(glance(*target), move.start, in_place=move.in_place):
            raise _foreign(move) from None
        if kept is not None:
            _keep_ahead(move, target)
        os.rename(content[1], target[1], src_dir_fd=content[0], dst_dir_fd=target[0])
        return
    except OSError as error:
        if error.errno != errno.EXDEV or move.swaps:
            raise
        _lay_copy_over(move, content, target, kept)
        return
    _look_at_what_came_out(move, inode, content, target, kept)


def _look_at_what_came_out(move: Move, inode: int, content: Place, target: Place, kept: Place | None) -> None:
    """What was there at the instant of the exchange is looked at now: nobody can come in between."""
    if not _is_what_goes(move, *content):
        _exchange_back(move, inode, content, target)
        raise _foreign(move)
    _let_go(content, kept)


def _exchange_back(move: Move, inode: int, content: Place, target: Place) -> None:
    """Somebody else's version gets its name again; if there is a newer one by now, that, and it stays beside it."""
    with suppress(FileNotFoundError):  # it was removed meanwhile: so be it
        exchange(content, target)
        out = glance(*content)
        if out is not None and out.inode != inode:
            exchange(content, target)
            with suppress(FileExistsError):
                put_new(content, (target[0], move.aside))


def give_names_back(moves: Iterable[Move]) -> None:
    """Of forward moves: what somebody saved right before an exchange, and a crash left where that came from, gets
    its name again. No way back would find it there. Raises OSError."""
    with Reach() as reach, Reach() as contents:
        for move in moves:
            if move.keeps is None or move.content is None or (os.path.lexists(move.keeps) and not move.swaps):
                continue
            with suppress(FileNotFoundError, NotADirectoryError):  # it went with its view, or was not put there yet
                content, target = contents.beside(move.content), reach.parent(move.root, move.relative)
                out, now = glance(*content), glance(*target)
                if out is None or now is None or not is_state(now, move.end) or is_state(out, move.end):
                    continue
                if not (_is_copy(move, out) or _is_what_goes(move, *content)):
                    _exchange_back(move, now.inode, content, target)


def _keep_ahead(move: Move, target: Place) -> None:
    """Where no exchange can make the before-image."""
    assert move.start is not None
    assert move.keeps is not None
    with suppress(FileExistsError):  # of a crash: a link is whole
        keep_image(*target, move.start, move.keeps)


def _lay_copy_over(move: Move, content: Place, target: Place, kept: Place | None) -> None:
    if kept is not None:
        _keep_ahead(move, target)
    beside = _copied_beside(move, content, target)
    mine = glance(*beside)
    assert mine is not None
    try:
        _lay_over(move, mine.inode, beside, target, None)
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
    now = glance(directory, name)
    if move.in_place and not is_state(now, move.end, in_place=True):
        raise _foreign(move)
    set_metadata(directory, name, move.end, times=now is not None and has_time_of(move, now))


def _unlock_ancestors(moves: Iterable[Move]) -> None:
    """Gives us access to directories that lack it, as the command did for itself; their own move ends it."""
    unlock(directories_above(moves))


def _images(moves: Iterable[Move]) -> Generator[int]:
    """A descriptor of each directory into which before-images were brought, or a view's files back."""
    return _opened({path.rpartition("/")[0] for move in moves for path in (move.keeps, move.owed) if path})


def _opened(directories: Iterable[str | Path]) -> Generator[int]:
    for holder in directories:
        with suppress(FileNotFoundError):
            yield os.open(holder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


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
