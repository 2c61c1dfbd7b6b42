"""Reads what a workspace changes: walks its version next to the user's files, and never follows a link.

In an upper directory a whiteout deletes and an opaque directory replaces; everything else is a new or a copied-up
version of what the user has. In a copy everything that is not as the manifest says was changed by the task.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.manifest import Manifest
from artoo.workspace.directory import Covered
from artoo.workspace.fs.stat import (
    DIRECTORY_FLAGS,
    NodeState,
    digest_file,
    glance,
    is_opaque,
    is_whiteout,
    open_directory,
    opened_directory,
    read_state,
    read_xattrs,
    with_rights,
)

DEEPEST = 200
"""Directories in each other, below a root. Deeper trees are refused: the walk holds a descriptor for each level."""

MOST_PATHS = 500_000
"""More paths than this are refused: a review of them would be meaningless, and reading them takes minutes."""


def scan(covered: tuple[Covered, ...], manifest: Manifest | None = None) -> list[Effect]:
    """Return all effects in path order. `manifest`: the covered directories are copies.

    Raises SandboxError when they cannot be read completely.
    """
    found: list[Effect] = []
    for one in covered:
        found += _Scanner(one, manifest, MOST_PATHS - len(found)).effects()
    return sorted(found, key=lambda effect: effect.path)


class _Entry(NamedTuple):
    """A name in the task's version of a directory. `state` None: it is deleted. `changed` False: as it was."""

    name: str
    state: NodeState | None
    changed: bool = True


class _Scanner:
    """One walk over one covered directory."""

    def __init__(self, covered: Covered, manifest: Manifest | None, limit: int) -> None:
        self._root = os.fsencode(covered.root)
        self._place = os.fsencode(covered.place)
        self._number = covered.number
        self._manifest = manifest
        self._limit = limit
        self._found: list[Effect] = []

    def effects(self) -> list[Effect]:
        with self._readable(b""):
            above = os.open(os.path.dirname(self._place), DIRECTORY_FLAGS)
        try:
            with self._readable(b""):
                lower = os.open(self._root, DIRECTORY_FLAGS)
            try:
                self._walk_root(above, lower)
            finally:
                os.close(lower)
        finally:
            os.close(above)
        return self._found

    def _walk_root(self, above: int, lower: int) -> None:
        name = os.fsdecode(os.path.basename(self._place))
        before, after = read_state(lower, "."), glance(above, name)
        assert before is not None
        if after is None or not after.is_directory:
            raise SandboxError(f"{os.fsdecode(self._place)} is gone: the task's changes cannot be read")
        if self._is_changed(b"", after):
            # Owner and attributes of the root are what artoo could give its upper directory: only the mode tells.
            same = after._replace(uid=before.uid, gid=before.gid, xattrs=before.xattrs)
            self._metadata(b"", before, same)
        with self._opened(above, name, after, b"") as inside:
            self._directory(inside, lower, b"", opaque=False)

    def _directory(self, upper: int, lower: int | None, relative: bytes, *, opaque: bool) -> None:
        """`opaque`: this directory, or one above it, hides everything of the user's that is below."""
        self._bound(relative)
        names = set[str]()
        for entry in self._entries(upper, relative):
            names.add(entry.name)
            self._entry(upper, lower, entry, _join(relative, entry.name), hidden=opaque)
        if opaque and lower is not None:
            for name in sorted(set(os.listdir(lower)) - names, key=os.fsencode):
                self._gone(lower, name, _join(relative, name))

    def _entries(self, upper: int, relative: bytes) -> Iterator[_Entry]:
        """Yield the names of one directory that may differ from the user's, in byte order."""
        names = os.listdir(upper)
        deleted = self._manifest.names_in(self._number, relative).difference(names) if self._manifest else ()
        for name in sorted((*names, *deleted), key=os.fsencode):
            state = glance(upper, name)
            if state is None or (self._manifest is None and is_whiteout(state)):
                yield _Entry(name, None)
                continue
            changed = self._is_changed(_join(relative, name), state)
            if changed or state.is_directory:
                yield _Entry(name, state, changed)

    def _is_changed(self, relative: bytes, state: NodeState) -> bool:
        return self._manifest is None or self._manifest.is_changed(self._number, relative, state)

    def _entry(self, upper: int, lower: int | None, entry: _Entry, relative: bytes, *, hidden: bool) -> None:
        name, after = entry.name, entry.state
        if after is None:
            if lower is not None:
                self._gone(lower, name, relative)
        elif after.is_directory:
            before = None if lower is None else read_state(lower, name)
            self._subdirectory(upper, lower, entry, relative, before, after, hidden)
        else:
            self._leaf(upper, lower, name, relative, after)

    def _subdirectory(
        self,
        upper: int,
        lower: int | None,
        entry: _Entry,
        relative: bytes,
        before: NodeState | None,
        after: NodeState,
        hidden: bool,
    ) -> None:
        name = entry.name
        with self._opened(upper, name, after, relative) as inside:
            after = (read_state(upper, name) or after)._replace(mode=after.mode)
            if lower is None or before is None or not before.is_directory:
                self._add(self._effect(relative, before, after))
                self._directory(inside, None, relative, opaque=False)
                return
            opaque = hidden or (self._manifest is None and is_opaque(upper, name))
            with self._entered(lower, name, relative) as inner:
                if entry.changed:
                    self._metadata(relative, before, after)
                self._directory(inside, inner, relative, opaque=opaque)

    def _leaf(self, upper: int, lower: int | None, name: str, relative: bytes, after: NodeState) -> None:
        before = None if lower is None else read_state(lower, name)
        after = after._replace(xattrs=read_xattrs(upper, name))
        digest = old = None
        if after.node is Node.FILE:
            digest = self._digest(upper, name, relative, after)
            if lower is not None and before is not None and before.node is Node.FILE and before.size == after.size:
                with suppress(OSError):  # unreadable: then nobody can tell that it is the same
                    old = digest_file(lower, name, before.size)
        if before is not None and _same_content(before, after, old, digest):
            self._metadata(relative, before, after, digest)
            return
        if before is not None and before.is_directory and lower is not None:
            self._children_gone(lower, name, relative)
        self._add(self._effect(relative, before, after, digest=digest, before_digest=old))

    def _metadata(self, relative: bytes, before: NodeState, after: NodeState, digest: str | None = None) -> None:
        """Add a thing with the same content only if its metadata differ: it was copied up for some reason."""
        times_differ = not after.is_directory and before.mtime_ns != after.mtime_ns
        if times_differ or not before.same_metadata(after):
            self._add(self._effect(relative, before, after, in_place=True, digest=digest))

    def _gone(self, lower: int, name: str, relative: bytes) -> None:
        before = read_state(lower, name)
        if before is None:
            return
        self._add(self._effect(relative, before, None))
        if before.is_directory:
            self._children_gone(lower, name, relative)

    def _children_gone(self, lower: int, name: str, relative: bytes) -> None:
        self._bound(relative)
        with self._entered(lower, name, relative) as inside:
            if inside is not None:
                for child in sorted(os.listdir(inside), key=os.fsencode):
                    self._gone(inside, child, _join(relative, child))

    def _effect(
        self,
        relative: bytes,
        before: NodeState | None,
        after: NodeState | None,
        *,
        in_place: bool = False,
        digest: str | None = None,
        before_digest: str | None = None,
    ) -> Effect:
        return Effect(
            self._root,
            self._root + b"/" + relative if relative else self._root,
            self._shown(relative),
            before,
            after,
            b"" if after is None else self._place + b"/" + relative if relative else self._place,
            in_place=in_place,
            digest=digest,
            before_digest=before_digest,
        )

    def _shown(self, relative: bytes) -> str:
        return printable_path(self._root + b"/" + relative if relative else self._root)

    @contextmanager
    def _opened(self, directory: int, name: str, state: NodeState, relative: bytes) -> Generator[int]:
        """Open a directory of the workspace, even if a command took its owner's rights away."""
        with ExitStack() as opened:
            with self._readable(relative):
                descriptor = opened.enter_context(opened_directory(directory, name, state.mode))
            yield descriptor

    @contextmanager
    def _entered(self, lower: int, name: str, relative: bytes) -> Generator[int | None]:
        """Open a directory of the user's; None if the user may not read it, as the task could not."""
        with ExitStack() as opened, self._readable(relative):
            try:
                descriptor = open_directory(lower, name)
                opened.callback(os.close, descriptor)
            except PermissionError:
                descriptor = None
            yield descriptor

    def _digest(self, upper: int, name: str, relative: bytes, state: NodeState) -> str:
        """Read a file of the workspace, even if a command made it unreadable."""
        with self._readable(relative), with_rights(upper, name, state.mode, stat.S_IRUSR):
            return digest_file(upper, name, state.size)

    def _bound(self, relative: bytes) -> None:
        if relative.count(b"/") > DEEPEST:
            raise SandboxError(f"{self._shown(relative[:80])}… nests deeper than {DEEPEST} directories: refused")

    def _add(self, effect: Effect) -> None:
        if len(self._found) >= self._limit:
            raise SandboxError(
                f"the task changes more than {MOST_PATHS:,} paths below {os.fsdecode(self._root)}: refused; delete "
                "what is not needed, or discard the task"
            )
        self._found.append(effect)

    @contextmanager
    def _readable(self, relative: bytes) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise SandboxError(
                f"cannot read what the task did to {self._shown(relative)}: {error.strerror}; nothing was applied"
            ) from error


def _join(relative: bytes, name: str) -> bytes:
    raw = os.fsencode(name)
    return relative + b"/" + raw if relative else raw


def _same_content(was: NodeState, after: NodeState, old: str | None, new: str | None) -> bool:
    if was.node is not after.node:
        return False
    if after.node is Node.FILE:
        return was.size == after.size and old is not None and old == new
    return (was.target, was.rdev) == (after.target, after.rdev)
