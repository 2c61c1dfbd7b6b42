"""A stat index of what a workspace holds, and the difference of two: what one call changed.

    mark() ── index ──► call ──► index ── difference ──► effects against the state at the mark

Only names and stat results are kept, so that an index of 10,000 files takes some 40 ms and no content is read.
Processes may go on writing meanwhile: directories are opened without following links, and what disappears is not
there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.base import BaseBook
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.manifest import Manifest
from artoo.workspace.changes.scan import DEEPEST
from artoo.workspace.changes.time_window import Moment
from artoo.workspace.directory import Covered
from artoo.workspace.files.beneath import digest_beneath, open_parent, readlink_beneath
from artoo.workspace.files.rooted import LocatedFiles
from artoo.workspace.fs.stat import DIRECTORY_FLAGS, NodeState, is_opaque, opened_directory, read_state, state_of

_DIGESTED_BYTES, _DIGESTED_FILES = 64 << 20, 1_000
"""How much content is read for the digests of one call's changes; further files have none."""

Key = tuple[int, str]
"""The number of a covered directory, and a path below it; empty for the covered directory itself."""


@dataclass(slots=True)
class Index:
    """What was seen at each path. `opaque`: directories that hide what the user has below them."""

    seen: dict[Key, os.stat_result] = field(default_factory=dict[Key, os.stat_result])
    opaque: set[Key] = field(default_factory=set[Key])


def read_index(covered: tuple[Covered, ...], before: Index | None = None) -> Index:
    """Read the index of all covered directories. `before`: an earlier one, which saves looking at attributes."""
    found, known = Index(), before or Index()
    for one in covered:
        with suppress(FileNotFoundError), opened(one.place) as descriptor:
            found.seen[one.number, ""] = os.fstat(descriptor)
            _read_directory(found, known, one.number, descriptor, "")
    return found


def _read_directory(found: Index, known: Index, number: int, descriptor: int, prefix: str) -> None:
    inner: list[tuple[str, os.stat_result]] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                seen = entry.stat(follow_symlinks=False)
                found.seen[number, prefix + entry.name] = seen
                if entry.is_dir(follow_symlinks=False):
                    inner.append((entry.name, seen))
    if prefix.count("/") >= DEEPEST:
        return
    for name, seen in inner:
        key = (number, prefix + name)
        old = known.seen.get(key)
        if is_opaque(descriptor, name) if _differs(old, seen) else key in known.opaque:
            found.opaque.add(key)
        # It may be gone, replaced, or closed to its owner.
        with suppress(OSError), opened_directory(descriptor, name, stat.S_IMODE(seen.st_mode)) as here:
            _read_directory(found, known, number, here, f"{key[1]}/")


def _differs(was: os.stat_result | None, seen: os.stat_result) -> bool:
    """True if something was changed: any write, also of a mode or an attribute, sets the time of change."""
    return (
        was is None
        or was.st_ctime_ns != seen.st_ctime_ns
        or was.st_ino != seen.st_ino
        or was.st_size != seen.st_size  # twice in one tick of the clock
    )


def _is_deleted(seen: os.stat_result) -> bool:
    """True for a whiteout."""
    return stat.S_ISCHR(seen.st_mode) and seen.st_rdev == 0


def look(book: BaseBook, covered: tuple[Covered, ...], copied: Manifest | None, before: Index) -> Index:
    """Read the index, and record the user's version of each path that the task has changed since `before`.

    Raises SandboxError (full disk).
    """
    now = Moment.now()
    index = read_index(covered, before)
    roots = {one.number: f"{one.root}/" for one in covered}
    changed = [key for key, seen in index.seen.items() if _differs(before.seen.get(key), seen)]
    try:
        if copied is None:
            book.look(((_printable(roots, key), None) for key in changed), None)
            book.look(((path, None) for path in _hidden_paths(book, index, roots, changed)), now)
        else:
            ours = _changed_copies(index, before, copied, changed)
            book.look(((_printable(roots, key), copied.get(key[0], os.fsencode(key[1]))) for key in ours), now)
    except OSError as error:
        raise SandboxError(f"the workspace cannot be written: {error.strerror}; free space") from error
    return index


def _changed_copies(index: Index, before: Index, copied: Manifest, changed: Iterable[Key]) -> Iterator[Key]:
    """Yield the changed paths that are not as they were copied, and those that are gone."""
    for key in changed:
        if copied.is_changed(key[0], os.fsencode(key[1]), state_of(index.seen[key])):
            yield key
    known = before.seen or ((number, os.fsdecode(raw)) for number, raw, _ in copied.items())
    yield from (key for key in known if key not in index.seen)


def _hidden_paths(book: BaseBook, index: Index, roots: Mapping[int, str], changed: Iterable[Key]) -> Iterator[str]:
    """Yield what the user has below directories that were deleted, replaced or made anew."""
    for key in changed:
        if stat.S_ISDIR(index.seen[key].st_mode) and key not in index.opaque:
            continue
        base = book.bases.get(_printable(roots, key))
        if base is not None and base.was.is_directory:
            for directory, directories, files in os.walk(f"{roots[key[0]]}{key[1]}"):
                yield from (printable_path(os.fsencode(f"{directory}/{name}")) for name in (*directories, *files))


def _printable(roots: Mapping[int, str], key: Key) -> str:
    return printable_path(os.fsencode(f"{roots[key[0]]}{key[1]}".rstrip("/")))


class Difference:
    """The difference of two indexes of one workspace as effects, each against the state at the first one.

    `lower`: what the covered directories show where an index has nothing: the user's files, for copies nothing.
    """

    def __init__(self, covered: tuple[Covered, ...], old: Index, new: Index, lower: LocatedFiles | None) -> None:
        self._covered = {one.number: one for one in covered}
        self._old = old
        self._new = new
        self._lower = lower
        self._left = _DIGESTED_BYTES
        self._digests = 0
        self._found: dict[bytes, Effect] = {}

    def effects(self) -> list[Effect]:
        """Return the effects in path order. Blocking."""
        old, new = self._old, self._new
        for key, seen in new.seen.items():
            was = old.seen.get(key)
            if _differs(was, seen):
                self._changed(key, was, seen)
        for key, was in old.seen.items():
            if key not in new.seen and not _is_deleted(was):
                self._add(key, state_of(was), None)
        return [self._found[path] for path in sorted(self._found)]

    def _changed(self, key: Key, was: os.stat_result | None, seen: os.stat_result) -> None:
        before = self._before(key, was)
        if _is_deleted(seen) and self._lower is not None:
            if before is not None:
                self._gone(key, before)
            return
        after = state_of(seen, self._target(key, seen))
        both = before is not None and before.is_directory and after.is_directory
        if (key in self._new.opaque and key not in self._old.opaque) or (
            before is not None and before.is_directory and not both
        ):
            self._children_gone(key)
        if before is None or not both:
            self._leaf(key, before, after, was)
        elif key[1] and not before._replace(xattrs=()).same_metadata(after):
            self._add(key, before, after, in_place=True)

    def _leaf(self, key: Key, before: NodeState | None, after: NodeState, was: os.stat_result | None) -> None:
        one = self._covered[key[0]]
        digest = self._digest(one.place, key[1], after)
        same = False
        if before is not None and before.node is after.node is Node.FILE and before.size == after.size:
            if was is not None:  # what was there cannot be read any more
                same = (before.inode, before.mtime_ns) == (after.inode, after.mtime_ns)
            else:  # an equal copy of the user's file was made for its metadata, or for nothing
                same = digest is not None and digest == self._digest(one.root, key[1], before)
                if same and before._replace(xattrs=()).same_metadata(after) and before.mtime_ns == after.mtime_ns:
                    return
        self._add(key, before, after, in_place=same, digest=digest)

    def _before(self, key: Key, was: os.stat_result | None) -> NodeState | None:
        """Return what was there at the mark: the workspace's own version, else the user's if nothing hid it."""
        if was is not None:
            return None if self._lower is not None and _is_deleted(was) else state_of(was)
        if self._lower is None or self._was_hidden(key):
            return None
        return state_below(self._lower, self._covered[key[0]], key[1])

    def _was_hidden(self, key: Key) -> bool:
        """True if at the mark a directory above was opaque, deleted, or no directory."""
        number, path = key
        while path:
            path = path.rpartition("/")[0]
            above = self._old.seen.get((number, path))
            if above is not None and ((number, path) in self._old.opaque or not stat.S_ISDIR(above.st_mode)):
                return True
        return False

    def _gone(self, key: Key, before: NodeState) -> None:
        self._add(key, before, None)
        if before.is_directory:
            self._children_gone(key)

    def _children_gone(self, key: Key) -> None:
        """Add what the user has below a directory that is deleted or hidden now and was not at the mark."""
        one, (number, path) = self._covered[key[0]], key
        if self._lower is None or self._was_hidden((number, f"{path}/any")):
            return
        with suppress(OSError):
            for name in self._lower.names(one.root / path):
                child = (number, f"{path}/{name}".lstrip("/"))
                if child not in self._old.seen and child not in self._new.seen:
                    state = state_below(self._lower, one, child[1])
                    if state is not None:
                        self._gone(child, state)

    def _target(self, key: Key, seen: os.stat_result) -> bytes:
        if stat.S_ISLNK(seen.st_mode):
            with suppress(OSError), opened(self._covered[key[0]].place) as root:
                return os.fsencode(readlink_beneath(root, key[1]))
        return b""

    def _digest(self, place: Path, path: str, state: NodeState) -> str | None:
        if state.node is not Node.FILE or state.size > self._left or self._digests >= _DIGESTED_FILES:
            return None
        self._left -= state.size
        self._digests += 1
        with suppress(OSError), opened(place) as root:
            return digest_beneath(root, path, state.size)
        return None

    def _add(
        self,
        key: Key,
        before: NodeState | None,
        after: NodeState | None,
        *,
        in_place: bool = False,
        digest: str | None = None,
    ) -> None:
        one = self._covered[key[0]]
        path = os.fsencode(f"{one.root}/{key[1]}".rstrip("/"))
        source = b"" if after is None else os.fsencode(f"{one.place}/{key[1]}")
        self._found[path] = Effect(
            os.fsencode(one.root),
            path,
            printable_path(path),
            before,
            after,
            source,
            in_place=in_place,
            digest=digest,
        )


@contextmanager
def opened(place: Path) -> Generator[int]:
    """Open a directory while the context lasts. Raises OSError."""
    descriptor = os.open(place, DIRECTORY_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def state_below(files: LocatedFiles, one: Covered, path: str) -> NodeState | None:
    """Return the state of a path below a covered directory, as some files show it; None where nothing is."""
    try:
        parent, name = open_parent(*files.locate(f"{one.root}/{path}"))
    except OSError:
        return None
    try:
        return read_state(parent, name)
    finally:
        os.close(parent)
