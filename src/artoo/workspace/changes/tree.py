"""Read the tree of a workspace, and compare it with an earlier one, with limits on depth and paths.

The tree can also be compared with the user's files.

    before a call:   read_tree ──────────────────────────► Tree
    after the call:  read_tree, compared with that Tree ─► Difference ─► effects of the call
    at settlement:   read_tree, compared with nothing ───► Difference ─► effects against the user's files

In an upper directory, a whiteout means a deletion, and an opaque directory means a replaced directory. Every other
entry is a new file or a changed version of the user's file. In a copy, every path that differs from the manifest
was changed by the task. Links are not followed. Processes may write while the tree is read. A path that vanishes
meanwhile counts as missing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.base import BaseBook, BaseManifest, Key
from artoo.workspace.changes.effect import Effect
from artoo.workspace.directory import Covered
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import printable
from artoo.workspace.fs.stat import (
    NodeState,
    digest_file,
    is_opaque,
    opened,
    opened_directory,
    read_xattrs,
    state_of,
    with_rights,
)

DEEPEST = 200
"""The maximum number of directory levels below a root. A deeper tree is refused, because the walk keeps one
descriptor open for each level."""

MOST_PATHS = 500_000
"""The maximum number of changed paths. A larger number is refused, because a user could not review it, and reading
it takes minutes."""

_DIGESTED_BYTES, _DIGESTED_FILES = 64 << 20, 1_000
"""The maximum numbers of bytes and of files that are hashed for the changes of one call. Files beyond them get no
digest."""


class Detail(NamedTuple):
    """The complete state of a changed path, and the sha256 of its content if it is a file."""

    state: NodeState
    digest: str | None


@dataclass(slots=True)
class Tree:
    """The paths of a workspace, without file contents. `opaque`: directories that hide the user's files of the same
    path.

    `changed`: the paths that differ from the earlier tree `known`. `details`: the details of paths that differ from
    the tree `since` (see `read_tree`).
    """

    seen: dict[Key, os.stat_result] = field(default_factory=dict[Key, os.stat_result])
    opaque: set[Key] = field(default_factory=set[Key])
    changed: list[Key] = field(default_factory=list[Key])
    details: dict[Key, Detail] = field(default_factory=dict[Key, Detail])


def read_tree(
    covered: Iterable[Covered],
    known: Tree,
    since: Tree | None = None,
    manifest: BaseManifest | None = None,
    *,
    overlay: bool = True,
    all_of_it: bool = False,
) -> Tree:
    """Read the tree of the covered directories. `known`: an earlier tree. The attributes of paths that are
    unchanged since then are not read again.

    `since`: details are read for the paths that differ from this tree, or for no path if it is None. In copies,
    they are read for the paths that differ from the `manifest`. `all_of_it`: if true, an unreadable path raises an
    error (SandboxError, OSError), and all contents are hashed. If false, unreadable paths are left out, because a
    process may be writing, and the amount of hashing is limited.
    """
    reader = _TreeWalk(known, since, manifest, overlay=overlay, strict=all_of_it)
    for one in covered:
        reader.read(one)
    return reader.found


class _TreeWalk:
    """One walk over the covered directories."""

    def __init__(
        self, known: Tree, since: Tree | None, manifest: BaseManifest | None, *, overlay: bool, strict: bool
    ) -> None:
        self.found = Tree()
        self._known = known
        self._since = since
        self._manifest = manifest
        self._overlay = overlay
        self._strict = strict
        self._bytes, self._files = _DIGESTED_BYTES, _DIGESTED_FILES

    def read(self, one: Covered) -> None:
        """Read one covered directory."""
        with self._passable(), opened(one.place) as here:
            self._see((one.number, ""), here, ".", os.fstat(here))
            self._directory(one.number, here, "", opaque=False)

    def _directory(self, number: int, here: int, prefix: str, *, opaque: bool) -> None:
        inner: list[tuple[str, os.stat_result]] = []
        with os.scandir(here) as entries:
            for entry in entries:
                try:
                    seen = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                self._see((number, prefix + entry.name), here, entry.name, seen)
                if stat.S_ISDIR(seen.st_mode):
                    inner.append((entry.name, seen))
        if prefix.count("/") >= DEEPEST:
            if self._strict and inner:
                raise SandboxError(f"{prefix[:80]}… nests deeper than {DEEPEST} directories: refused")
            return
        for name, seen in inner:
            key = (number, prefix + name)
            hides = opaque or (self._overlay and self._is_opaque(key, here, name, seen))
            if hides:
                self.found.opaque.add(key)
            # The directory may have been deleted or replaced, or its permissions may not allow its owner to read
            # it.
            with self._passable(), opened_directory(here, name, stat.S_IMODE(seen.st_mode)) as below:
                self._directory(number, below, f"{key[1]}/", opaque=hides)

    def _is_opaque(self, key: Key, here: int, name: str, seen: os.stat_result) -> bool:
        if differs(self._known.seen.get(key), seen):
            return is_opaque(here, name)
        return key in self._known.opaque

    def _see(self, key: Key, here: int, name: str, seen: os.stat_result) -> None:
        self.found.seen[key] = seen
        # Most paths are unchanged since the last tree, and reading the attributes of all of them would take too
        # long. Reading the attributes of all would take too long.
        if changed := differs(self._known.seen.get(key), seen):
            self.found.changed.append(key)
        since = self._since
        if since is not None and (changed if since is self._known else differs(since.seen.get(key), seen)):
            self._look(key, here, name, seen)

    def _look(self, key: Key, here: int, name: str, seen: os.stat_result) -> None:
        """Read the details of a path."""
        if self._manifest is not None and not self._manifest.is_changed(key, state_of(seen)):
            return
        try:
            target = os.fsencode(os.readlink(name, dir_fd=here)) if stat.S_ISLNK(seen.st_mode) else b""
            state = state_of(seen, target)
            if xattrs := read_xattrs(here, name):
                state = state._replace(xattrs=xattrs)
            self.found.details[key] = Detail(state, self._digest(here, name, state))
        except OSError:
            if self._strict:
                raise

    def _digest(self, here: int, name: str, state: NodeState) -> str | None:
        if state.node is not Node.FILE:
            return None
        if not self._strict:
            # The model waits for the list of changes, so only a limited amount is read.
            self._bytes, self._files = self._bytes - state.size, self._files - 1
            if self._bytes < 0 or self._files < 0:
                return None
        try:
            with with_rights(here, name, state.mode, stat.S_IRUSR):
                return digest_file(here, name, state.size)
        except OSError:
            if self._strict:
                raise
            return None

    @contextmanager
    def _passable(self) -> Generator[None]:
        """Ignore errors for paths that cannot be read, unless `all_of_it` is true."""
        try:
            yield
        except OSError:
            if self._strict:
                raise


def differs(was: os.stat_result | None, seen: os.stat_result) -> bool:
    """True if a path was changed. Every change, even of a mode or an attribute, updates the ctime."""
    return (
        was is None
        or was.st_ctime_ns != seen.st_ctime_ns
        or was.st_ino != seen.st_ino
        # two changes within one tick of the clock have equal times
        or was.st_size != seen.st_size
    )


def is_deletion(seen: os.stat_result) -> bool:
    """True for a whiteout, the entry of an upper directory that marks its name as deleted."""
    return stat.S_ISCHR(seen.st_mode) and seen.st_rdev == 0


def note_bases(
    book: BaseBook, covered: Iterable[Covered], manifest: BaseManifest | None, old: Tree, new: Tree, read_ns: int
) -> None:
    """Record the user's version of each path that the task changed between the trees `old` and `new`.

    `read_ns`: the time at which reading `new` began. Raises SandboxError (full disk).
    """
    roots = {one.number: f"{one.root}/" for one in covered}
    book.load()
    changed = new.changed
    try:
        if manifest is not None:
            changed = [key for key in changed if manifest.is_changed(key, state_of(new.seen[key]))]
            changed += [key for key in old.seen or manifest.entries if key not in new.seen]
            book.look(((_printable(roots, key), manifest.entries.get(key)) for key in changed), read_ns)
        else:
            book.look(((_printable(roots, key), None) for key in changed), None)
            book.look(((path, None) for path in _hidden_paths(book, new, roots)), read_ns)
    except OSError as error:
        raise SandboxError(f"the workspace cannot be written: {error.strerror}; free space") from error


def _hidden_paths(book: BaseBook, tree: Tree, roots: Mapping[int, str]) -> Iterator[str]:
    """Yield the paths of the user that are below a directory which the task deleted, replaced or recreated."""
    if not any(base is not None and base.was.is_directory for base in book.bases.values()):
        return
    for key in tree.changed:
        if stat.S_ISDIR(tree.seen[key].st_mode) and key not in tree.opaque:
            continue
        base = book.bases.get(_printable(roots, key))
        if base is not None and base.was.is_directory:
            for directory, directories, files in os.walk(f"{roots[key[0]]}{key[1]}"):
                yield from (printable(f"{directory}/{name}") for name in (*directories, *files))


def _printable(roots: Mapping[int, str], key: Key) -> str:
    return printable(f"{roots[key[0]]}{key[1]}".rstrip("/"))


@dataclass(slots=True)
class Difference:
    """The difference between two trees, as effects relative to the state at the first tree. Blocking; raises
    OSError.

    `lower`: the user's files, which are visible at the paths for which the first tree has no entry. `lower` is None
    if the first tree is the complete tree of a copy. `overlay`: true if whiteouts and opaque directories have the
    meaning that they have in overlayfs.
    """

    covered: Iterable[Covered]
    old: Tree
    new: Tree
    lower: Walker | None
    overlay: bool = True
    _found: dict[bytes, Effect] = field(default_factory=dict[bytes, Effect])
    _at: dict[int, Covered] = field(default_factory=dict[int, Covered])

    def effects(self, gone: Iterable[Key]) -> list[Effect]:
        """Return the effects in path order. `gone`: the paths of the first tree that are missing in the second."""
        self._at = {one.number: one for one in self.covered}
        for key, detail in self.new.details.items():
            self._changed(key, detail)
        for key in gone:
            before = self._before(key)
            if before is not None:
                self._gone(key, before)
        return [self._found[path] for path in sorted(self._found)]

    def _changed(self, key: Key, detail: Detail) -> None:
        before, after = self._before(key), detail.state
        if self.overlay and is_deletion(self.new.seen[key]):
            if before is not None:
                self._gone(key, before)
            return
        was_directory = before is not None and before.is_directory
        # The task removed and recreated a directory that is opaque now and was not before, so its former entries
        # are deleted.
        hides = key in self.new.opaque and key not in self.old.opaque
        if was_directory and (hides or not after.is_directory):
            self._children_gone(key)
        if before is None or not self._is_same(key, before, detail):
            self._add(key, before, detail)
            return
        # The content is the same, so overlayfs copied the path because of its metadata, or because it was opened
        # for writing without a change.
        if not key[1]:
            # artoo may be unable to set owner and attributes of a root's upper directory, so only the mode counts.
            after = after._replace(uid=before.uid, gid=before.gid, xattrs=before.xattrs)
        elif key in self.old.seen:
            after = after._replace(xattrs=before.xattrs)  # the first tree contains no attributes to compare with
        times_differ = not after.is_directory and (before.mtime_ns != after.mtime_ns or key in self.old.seen)
        if times_differ or not before.same_metadata(after):
            self._add(key, before, detail._replace(state=after), in_place=True)

    def _is_same(self, key: Key, before: NodeState, detail: Detail) -> bool:
        """True if kind and content are equal, so that only metadata can differ."""
        after = detail.state
        if before.node is not after.node or after.is_directory:
            return before.node is after.node
        if key in self.old.seen:  # the old content cannot be read any more
            return (before.inode, before.mtime_ns, before.size) == (after.inode, after.mtime_ns, after.size)
        if after.node is Node.FILE:
            if self.lower is None or detail.digest is None or before.size != after.size:
                return False
            return self.lower.digest(self._path(key), before) == detail.digest
        return (before.target, before.rdev) == (after.target, after.rdev)

    def _before(self, key: Key) -> NodeState | None:
        """Return the former state. It is in the first tree, or else that of the user's file if the tree did not
        hide it."""
        was = self.old.seen.get(key)
        if was is not None:
            return None if self.overlay and is_deletion(was) else state_of(was)
        if self.lower is None or self._was_hidden(key):
            return None
        return self.lower.read(self._path(key))

    def _was_hidden(self, key: Key) -> bool:
        """True if in the first tree a parent of the path was opaque, deleted, or not a directory."""
        number, path = key
        while path:
            path = path.rpartition("/")[0]
            above = self.old.seen.get((number, path))
            if above is not None:
                return (number, path) in self.old.opaque or not stat.S_ISDIR(above.st_mode)
        return False

    def _gone(self, key: Key, before: NodeState) -> None:
        self._add(key, before, None)
        if before.is_directory:
            self._children_gone(key)

    def _children_gone(self, key: Key) -> None:
        """Add the user's paths below a directory that is deleted or hidden now and was not before."""
        number, path = key
        if self.lower is None or self._was_hidden((number, f"{path}/any")):
            return
        for name in self.lower.names(self._path(key)):
            child = (number, f"{path}/{name}".lstrip("/"))
            if child not in self.old.seen and child not in self.new.seen:
                state = self.lower.read(self._path(child))
                if state is not None:
                    self._gone(child, state)

    def _path(self, key: Key) -> str:
        return f"{self._at[key[0]].root}/{key[1]}".rstrip("/")

    def _add(self, key: Key, before: NodeState | None, after: Detail | None, *, in_place: bool = False) -> None:
        if len(self._found) >= MOST_PATHS:
            raise SandboxError(
                f"the task changes more than {MOST_PATHS:,} paths: refused; delete what is not needed"
            )
        one, path = self._at[key[0]], os.fsencode(self._path(key))
        self._found[path] = Effect(
            os.fsencode(one.root),
            path,
            printable_path(path),
            before,
            None if after is None else after.state,
            b"" if after is None else os.fsencode(f"{one.place}/{key[1]}".rstrip("/")),
            in_place=in_place,
            digest=None if after is None else after.digest,
        )
