"""A copy of what a view shows, for tiers that can lay nothing over the real files.

Before a command the copy is made equal to the view; what has not changed since is left as it is. Afterwards what
the command changed in the copy is written into a layer, as an overlay would have done it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB
from artoo.world.below import Below, Found, below
from artoo.world.files import copy_node, set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState, read_state
from artoo.world.opened import opened_up
from artoo.world.remove import remove_tree
from artoo.world.stage import Layer

_COPIED = (Node.FILE, Node.LINK, Node.DIRECTORY)


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """What one copy may hold at most."""

    paths: int = 50_000
    bytes: int = 2_048 * MIB


_Stamp = tuple[int, int, int, int, int]


def _stamp(state: NodeState) -> _Stamp:
    """What tells whether a thing is as it was: any write, also of its mode, changes the last number."""
    if state.is_directory:
        return (state.mode, state.uid, state.gid, 0, 0)
    return (state.mode, state.device, state.inode, state.size, state.ctime_ns)


@dataclass(slots=True)
class Mirror:
    """The copy of one root. `leave_out` says which absolute paths are not copied."""

    place: Path
    leave_out: Callable[[bytes], bool]
    limits: CopyLimits = field(default_factory=CopyLimits)
    _known: dict[bytes, tuple[_Stamp, _Stamp]] = field(default_factory=dict[bytes, tuple[_Stamp, _Stamp]])
    _paths: int = 0
    _bytes: int = 0

    def follow(self, layer: Layer) -> None:
        """Makes the copy what is below `layer`. Raises SandboxError (too much of it), OSError (disk full)."""
        if not self._known:  # of another process, or cut by a crash
            remove_tree(self.place)
        self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._paths = self._bytes = 0
        before, self._known = self._known, {}
        root = os.fsencode(layer.root)
        with _opened(self.place) as target, below(layer.root, layer.below) as lower:
            self._follow_directory(lower, target, self.place, root, b"", before)
            os.fchmod(target, lower.state.mode | 0o700)

    def _follow_directory(
        self,
        lower: Below,
        target: int,
        place: Path,
        path: bytes,
        relative: bytes,
        before: dict[bytes, tuple[_Stamp, _Stamp]],
    ) -> None:
        wanted = {name: found for name in lower.names() if (found := self._copied(lower, name, path)) is not None}
        for name in os.listdir(target):
            if name not in wanted:
                _remove(target, place, name)
        for name, found in wanted.items():
            inner = _join(relative, name)
            if found.state.is_directory:
                self._follow_subdirectory(lower, found, target, place, name, path, inner, before)
            else:
                self._follow_leaf(found, target, place, name, inner, before)

    def _copied(self, lower: Below, name: str, path: bytes) -> Found | None:
        found = lower.find(name)
        if found is None or found.state.node not in _COPIED:
            return None
        return None if self.leave_out(path + b"/" + os.fsencode(name)) else found

    def _follow_subdirectory(
        self,
        lower: Below,
        found: Found,
        target: int,
        place: Path,
        name: str,
        path: bytes,
        relative: bytes,
        before: dict[bytes, tuple[_Stamp, _Stamp]],
    ) -> None:
        have = read_state(target, name)
        if have is not None and not have.is_directory:
            os.unlink(name, dir_fd=target)
            have = None
        if have is None:
            os.mkdir(name, 0o700, dir_fd=target)
        self._count(found.state, relative)
        try:
            with lower.enter(name) as inside, opened_up(target, name, found.state.mode) as here:
                self._follow_directory(
                    inside, here, place / name, path + b"/" + os.fsencode(name), relative, before
                )
        except PermissionError:  # not ours to read, so not the command's either
            os.rmdir(name, dir_fd=target)
            return
        set_metadata(target, name, _as_ours(found.state), times=True)
        self._note(target, name, found.state, relative)

    def _follow_leaf(
        self,
        found: Found,
        target: int,
        place: Path,
        name: str,
        relative: bytes,
        before: dict[bytes, tuple[_Stamp, _Stamp]],
    ) -> None:
        self._count(found.state, relative)
        have = read_state(target, name)
        if have is not None:
            if before.get(relative) == (_stamp(found.state), _stamp(have)):
                self._known[relative] = before[relative]
                return
            _remove(target, place, name)
        try:
            copy_node(found.directory, name, _as_ours(found.state), place / name, durable=False)
        except PermissionError:
            (place / name).unlink(missing_ok=True)
            return
        self._note(target, name, found.state, relative)

    def _note(self, target: int, name: str, source: NodeState, relative: bytes) -> None:
        have = read_state(target, name)
        assert have is not None
        self._known[relative] = (_stamp(source), _stamp(have))

    def _count(self, state: NodeState, relative: bytes) -> None:
        self._paths += 1
        self._bytes += state.size
        if self._paths > self.limits.paths or self._bytes > self.limits.bytes:
            raise SandboxError(
                f"the project holds more than {self.limits.paths:,} paths or {self.limits.bytes / MIB:,.0f} MiB "
                f"(at {os.fsdecode(relative)}), too much for the copy in which this sandbox works: give the "
                "task a smaller --project; artoo doctor says what the better sandboxes need"
            )

    def write_changes(self, layer: Layer) -> None:
        """Leaves in `layer` (empty) what a command changed in the copy. Raises OSError."""
        copied: dict[bytes, set[str]] = {}
        for path in self._known:
            directory, _, name = path.rpartition(b"/")
            copied.setdefault(directory, set()).add(os.fsdecode(name))
        with _opened(self.place) as source:
            self._changes_in(source, _Upper(layer.upper, None), b"", copied)

    def _changes_in(
        self, source: int, upper: _Upper, relative: bytes, copied: Mapping[bytes, AbstractSet[str]]
    ) -> None:
        names = sorted(os.listdir(source), key=os.fsencode)
        for name in names:
            inner = _join(relative, name)
            state = read_state(source, name)
            if state is not None and state.is_directory:
                self._changed_directory(source, upper, name, inner, state, copied)
            elif state is not None and self._is_changed(inner, state):
                upper.leaf(source, name, state)
        for name in sorted(copied.get(relative, frozenset[str]()) - set(names), key=os.fsencode):
            upper.gone(name)

    def _changed_directory(
        self,
        source: int,
        upper: _Upper,
        name: str,
        relative: bytes,
        state: NodeState,
        copied: Mapping[bytes, AbstractSet[str]],
    ) -> None:
        inner = _Upper(upper.place / name, upper, state)
        with opened_up(source, name, state.mode) as inside:
            if self._is_changed(relative, state):
                inner.make()
            self._changes_in(inside, inner, relative, copied)
        inner.close()

    def _is_changed(self, relative: bytes, state: NodeState) -> bool:
        known = self._known.get(relative)
        return known is None or known[1] != _stamp(state)


@dataclass(slots=True)
class _Upper:
    """A directory of the layer that is written, made when something in it is. `above` None: the layer's own."""

    place: Path
    above: _Upper | None
    like: NodeState | None = None
    _made: bool = False

    def make(self) -> None:
        if self.above is None or self._made:
            return
        self.above.make()
        self.place.mkdir(mode=0o700)
        self._made = True

    def leaf(self, source: int, name: str, state: NodeState) -> None:
        self.make()
        record = StateRecord.of(state)
        assert record is not None
        copy_node(source, name, record, self.place / name, durable=False)

    def gone(self, name: str) -> None:
        self.make()
        os.mknod(self.place / name, stat.S_IFCHR, 0)

    def close(self) -> None:
        """Gives a directory that was made its mode and times."""
        record = StateRecord.of(self.like)
        if not self._made or record is None:
            return
        with _opened(self.place.parent) as parent:
            set_metadata(parent, self.place.name, record, times=True)


@contextmanager
def _opened(place: Path) -> Generator[int]:
    descriptor = os.open(place, DIRECTORY_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _as_ours(state: NodeState) -> StateRecord:
    """What somebody else owns is copied as ours, unless we are root."""
    record = StateRecord.of(state)
    assert record is not None
    if os.geteuid() == 0:
        return record
    return replace(record, uid=os.geteuid(), gid=os.getegid())


def _remove(target: int, place: Path, name: str) -> None:
    seen = os.stat(name, dir_fd=target, follow_symlinks=False)
    if stat.S_ISDIR(seen.st_mode):
        remove_tree(place / name)
    else:
        os.unlink(name, dir_fd=target)


def _join(relative: bytes, name: str) -> bytes:
    raw = os.fsencode(name)
    return relative + b"/" + raw if relative else raw
