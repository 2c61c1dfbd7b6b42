"""A stat index of what a workspace holds, and the difference of two: what one call changed.

    mark() ── index ──► call ──► index ── difference ──► effects against the state at the mark

Only names and stat results are kept, so an index of 10,000 files takes some 40 ms and no content is read. Processes
may go on writing meanwhile: directories are opened without following links, and what disappears is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Node, printable_path
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.manifest import Manifest
from artoo.workspace.changes.scan import DEEPEST
from artoo.workspace.directory import Covered
from artoo.workspace.files.beneath import open_parent
from artoo.workspace.files.rooted import LocatedFiles
from artoo.workspace.fs.stat import (
    DIRECTORY_FLAGS,
    NodeState,
    chmod_at,
    digest_file,
    is_opaque,
    read_state,
    state_of,
)

_DIGESTED_BYTES = 64 << 20
"""How much content is read for the digests of one call's changes; further files have none."""


class Seen(NamedTuple):
    """One path of an index. `deleted`: a whiteout. `opaque`: a directory that hides what the user has below it."""

    stamp: tuple[int, ...]
    result: os.stat_result
    deleted: bool = False
    opaque: bool = False


Index = dict[tuple[int, bytes], Seen]
"""By covered directory and path below it; the covered directory itself is the empty path."""


def read_index(covered: tuple[Covered, ...], *, copies: bool, before: Index | None = None) -> Index:
    """Read the index of all covered directories. `before`: an earlier one, which saves looking at attributes."""
    found: Index = {}
    for one in covered:
        with suppress(FileNotFoundError):
            descriptor = os.open(one.place, DIRECTORY_FLAGS)
            try:
                found[one.number, b""] = _seen(os.fstat(descriptor))
                _Reader(found, one.number, copies, before or {}).directory(descriptor, b"", 0)
            finally:
                os.close(descriptor)
    return found


class _Reader:
    def __init__(self, found: Index, number: int, copies: bool, before: Index) -> None:
        self._found = found
        self._number = number
        self._copies = copies
        self._before = before

    def directory(self, descriptor: int, relative: bytes, depth: int) -> None:
        prefix = relative + b"/" if relative else b""
        inner: list[tuple[str, bytes, int]] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    result = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                path = prefix + os.fsencode(entry.name)
                self._found[self._number, path] = self._entry(descriptor, entry.name, path, result)
                if stat.S_ISDIR(result.st_mode):
                    inner.append((entry.name, path, result.st_mode))
        if depth < DEEPEST:
            for name, path, mode in inner:
                self._enter(descriptor, name, path, mode, depth)

    def _enter(self, above: int, name: str, path: bytes, mode: int, depth: int) -> None:
        try:
            descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=above)
        except PermissionError:
            descriptor = _open_closed(above, name, stat.S_IMODE(mode))
        except OSError:  # it is gone, or was replaced meanwhile
            return
        if descriptor is None:
            return
        try:
            self.directory(descriptor, path, depth + 1)
        finally:
            os.close(descriptor)

    def _entry(self, directory: int, name: str, path: bytes, result: os.stat_result) -> Seen:
        seen = _seen(result)
        if self._copies:
            return seen
        if stat.S_ISDIR(result.st_mode):
            known = self._before.get((self._number, path))
            if known is not None and known.stamp == seen.stamp:
                return seen._replace(opaque=known.opaque)
            return seen._replace(opaque=is_opaque(directory, name))
        return seen._replace(deleted=True) if stat.S_ISCHR(result.st_mode) and result.st_rdev == 0 else seen


def _open_closed(directory: int, name: str, mode: int) -> int | None:
    """Open a directory whose rights a command took from its owner; it gets its mode back at once."""
    with suppress(OSError):
        chmod_at(directory, name, mode | stat.S_IRWXU)
        try:
            return os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
        finally:
            chmod_at(directory, name, mode)
    return None


def _seen(result: os.stat_result) -> Seen:
    return Seen((result.st_ino, result.st_ctime_ns, result.st_mode, result.st_size, result.st_mtime_ns), result)


def changed_paths(index: Index, copied: Manifest | None) -> Iterator[tuple[int, bytes]]:
    """Yield the paths that the task changed; of copies those that are not as they were copied."""
    if copied is None:
        yield from index
        return
    for (number, path), seen in index.items():
        if copied.is_changed(number, path, state_of(seen.result)):
            yield number, path
    for number, path, _ in copied.items():
        if (number, path) not in index:
            yield number, path


class Difference:
    """The difference of two indexes of one workspace as effects, each against the state at the first one.

    `lower`: what the covered directories show where the index has nothing: the user's files, for copies nothing.
    """

    def __init__(self, covered: tuple[Covered, ...], old: Index, new: Index, lower: LocatedFiles | None) -> None:
        self._covered = {one.number: one for one in covered}
        self._old = old
        self._new = new
        self._lower = lower
        self._budget = _DIGESTED_BYTES
        self._found: dict[bytes, Effect] = {}

    def effects(self) -> list[Effect]:
        """Return the effects in path order. Blocking."""
        for (number, path), seen in self._new.items():
            was = self._old.get((number, path))
            if was is None or (was.stamp, was.opaque, was.deleted) != (seen.stamp, seen.opaque, seen.deleted):
                self._changed(number, path, was, seen)
        for (number, path), was in self._old.items():
            if (number, path) not in self._new and not was.deleted:
                self._add(number, path, state_of(was.result), None)
        return [self._found[path] for path in sorted(self._found)]

    def _changed(self, number: int, path: bytes, was: Seen | None, seen: Seen) -> None:
        before = self._before(number, path, was)
        if seen.deleted:
            if before is not None:
                self._gone(number, path, before)
            return
        after = state_of(seen.result, self._target(number, path, seen))
        if after.is_directory and seen.opaque and not (was is not None and was.opaque):
            self._children_gone(number, path)
        if before is not None and before.is_directory and after.is_directory:
            if path and not before._replace(xattrs=()).same_metadata(after):
                self._add(number, path, before, after, in_place=True)
        elif path:
            if before is not None and before.is_directory:
                self._children_gone(number, path)
            self._leaf(number, path, before, after)

    def _leaf(self, number: int, path: bytes, before: NodeState | None, after: NodeState) -> None:
        digest = self._digest(self._covered[number].place, path, after)
        was = self._old.get((number, path))
        if before is not None and before.node is after.node is Node.FILE and before.size == after.size:
            if was is not None and _only_metadata(was, self._new[number, path]):
                self._add(number, path, before, after, in_place=True, digest=digest)
                return
            # A copy of the user's file with equal content was made for its metadata, or for nothing.
            if was is None and digest == self._digest(self._covered[number].root, path, before) is not None:
                if before._replace(xattrs=()).same_metadata(after) and before.mtime_ns == after.mtime_ns:
                    return
                self._add(number, path, before, after, in_place=True, digest=digest)
                return
        self._add(number, path, before, after, digest=digest)

    def _before(self, number: int, path: bytes, was: Seen | None) -> NodeState | None:
        """Return what was there at the mark: the workspace's own version, else the user's if nothing hid it."""
        if was is not None:
            return None if was.deleted else state_of(was.result)
        if self._lower is None or self._was_hidden(number, path):
            return None
        return state_below(self._lower, self._covered[number], path)

    def _was_hidden(self, number: int, path: bytes) -> bool:
        """True if at the mark a directory above was opaque, deleted, or no directory."""
        while path:
            path = path.rpartition(b"/")[0]
            above = self._old.get((number, path))
            if above is not None and (above.opaque or above.deleted or not stat.S_ISDIR(above.result.st_mode)):
                return True
        return False

    def _target(self, number: int, path: bytes, seen: Seen) -> bytes:
        if not stat.S_ISLNK(seen.result.st_mode):
            return b""
        with suppress(OSError), _parent(self._covered[number].place, path) as (parent, name):
            return os.fsencode(os.readlink(name, dir_fd=parent))
        return b""

    def _gone(self, number: int, path: bytes, before: NodeState) -> None:
        self._add(number, path, before, None)
        if before.is_directory:
            self._children_gone(number, path)

    def _children_gone(self, number: int, path: bytes) -> None:
        """Add what the user has below a directory that is deleted or hidden now and was not at the mark."""
        if self._lower is None or self._was_hidden(number, path + b"/any"):
            return
        for name in _names_below(self._lower, self._covered[number], path):
            child = path + b"/" + os.fsencode(name) if path else os.fsencode(name)
            if (number, child) not in self._old and (number, child) not in self._new:
                state = state_below(self._lower, self._covered[number], child)
                if state is not None:
                    self._gone(number, child, state)

    def _digest(self, place: Path, path: bytes, state: NodeState) -> str | None:
        if state.node is not Node.FILE or state.size > self._budget:
            return None
        self._budget -= state.size
        with suppress(OSError), _parent(place, path) as (parent, name):
            return digest_file(parent, name, state.size)
        return None

    def _add(
        self,
        number: int,
        path: bytes,
        before: NodeState | None,
        after: NodeState | None,
        *,
        in_place: bool = False,
        digest: str | None = None,
    ) -> None:
        one = self._covered[number]
        root = os.fsencode(one.root)
        whole = root + b"/" + path if path else root
        source = b"" if after is None else os.fsencode(one.place) + b"/" + path
        self._found[whole] = Effect(
            root, whole, printable_path(whole), before, after, source, in_place=in_place, digest=digest
        )


def _only_metadata(was: Seen, seen: Seen) -> bool:
    """True if the same file still has its size and time of writing: only its mode, owner or names changed."""
    old, new = was.result, seen.result
    return (old.st_ino, old.st_size, old.st_mtime_ns) == (new.st_ino, new.st_size, new.st_mtime_ns)


@contextmanager
def _parent(root: Path, path: bytes) -> Generator[tuple[int, str]]:
    """Open the directory that holds a path below a root, without following links. Raises OSError."""
    descriptor = os.open(root, DIRECTORY_FLAGS)
    try:
        parent, name = open_parent(descriptor, os.fsdecode(path))
    finally:
        os.close(descriptor)
    try:
        yield parent, name
    finally:
        os.close(parent)


def state_below(files: LocatedFiles, one: Covered, path: bytes) -> NodeState | None:
    """Return the state of a path below a covered directory, as some files show it; None where nothing is."""
    try:
        parent, name = open_parent(*files.locate(os.fsdecode(os.fsencode(one.root) + b"/" + path)))
    except OSError:
        return None
    try:
        return read_state(parent, name)
    finally:
        os.close(parent)


def _names_below(files: LocatedFiles, one: Covered, path: bytes) -> tuple[str, ...]:
    try:
        return files.names(Path(os.fsdecode(os.fsencode(one.root) + b"/" + path)))
    except OSError:
        return ()
