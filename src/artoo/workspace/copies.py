"""Plain copies of the user's directories, for machines on which no overlay can be mounted.

A copy is made when the sandbox starts and follows the user's edits before each turn: a file that the user changed
and the task did not is copied again. Contents are cloned where the file system can do that. Bounds: what lies
beyond them is not copied, and is reported.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from artoo.contracts.changes import Node, printable_path
from artoo.ports.workspace import MIB
from artoo.workspace.changes.manifest import Entry, Manifest, stamp_of
from artoo.workspace.commit.dirfd_ops import copy, set_metadata
from artoo.workspace.directory import Covered
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.fs.stat import DIRECTORY_FLAGS, NodeState, glance, read_state

_COPIED = (Node.FILE, Node.LINK)
_TEMPORARY = ".artoo-copy"
_MOST_REPORTED = 20


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """How much one workspace may copy."""

    paths: int = 50_000
    bytes: int = 2_048 * MIB


@dataclass(slots=True)
class Copier:
    """Keeps copies equal to the user's files where the task has changed nothing. Blocking; raises OSError.

    `hidden` decides which absolute paths are never copied. `left_out`: printable paths beyond the bounds.
    """

    manifest: Manifest
    hidden: Callable[[bytes], bool]
    limits: CopyLimits = field(default_factory=CopyLimits)
    left_out: set[str] = field(default_factory=set[str])
    _paths: int = 0
    _bytes: int = 0

    def follow(self, covered: Iterable[Covered]) -> None:
        """Bring the copies up to the user's files as they are now."""
        self._paths = self._bytes = 0
        self.left_out.clear()
        for one in covered:
            one.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            root, place = os.open(one.root, DIRECTORY_FLAGS), os.open(one.place, DIRECTORY_FLAGS)
            try:
                self._follow_tree(one.number, os.fsencode(one.root), root, place)
            finally:
                os.close(root)
                os.close(place)
        self.manifest.save()

    def notes(self) -> tuple[str, ...]:
        """Return what is missing in the copies, for model and user."""
        if not self.left_out:
            return ()
        listed = sorted(self.left_out)
        more = f" and {len(listed) - _MOST_REPORTED} more" if len(listed) > _MOST_REPORTED else ""
        return (
            f"the workspace is a copy of at most {self.limits.paths:,} paths and {self.limits.bytes // MIB:,} MiB; "
            f"missing in it: {', '.join(listed[:_MOST_REPORTED])}{more}",
        )

    def _follow_tree(self, number: int, name: bytes, root: int, place: int) -> None:
        if self.manifest.get(number, b"") is None:
            state = read_state(root, ".")
            assert state is not None
            os.fchmod(place, state.mode | 0o700)
            made = read_state(place, ".")
            assert made is not None
            self.manifest.put(number, b"", Entry(stamp_of(state), stamp_of(made)))
        waiting = deque([b""])  # breadth first: what the bounds leave out is deep
        while waiting:
            relative = waiting.popleft()
            try:
                source = open_beneath(root, os.fsdecode(relative), DIRECTORY_FLAGS)
            except OSError:  # unreadable for this user, or gone meanwhile
                continue
            try:
                target = open_beneath(place, os.fsdecode(relative), DIRECTORY_FLAGS)
            except OSError:  # the task removed it, replaced it, or took its rights away
                os.close(source)
                continue
            try:
                waiting += self._follow_directory(number, name, relative, source, target)
            finally:
                os.close(source)
                os.close(target)

    def _follow_directory(self, number: int, root: bytes, relative: bytes, source: int, target: int) -> list[bytes]:
        deeper: list[bytes] = []
        names = set(os.listdir(source))
        for name in sorted(names, key=os.fsencode):
            inner = relative + b"/" + os.fsencode(name) if relative else os.fsencode(name)
            if self.hidden(root + b"/" + inner):
                continue
            state = glance(source, name)
            if state is None:
                continue
            if state.is_directory:
                if self._follow_subdirectory(number, root, inner, target, name, state):
                    deeper.append(inner)
            elif state.node in _COPIED:
                self._follow_leaf(number, root, inner, source, target, name, state)
        for name in sorted(self.manifest.names_in(number, relative) - names):
            self._remove(number, relative, target, name)
        return deeper

    def _follow_subdirectory(
        self, number: int, root: bytes, relative: bytes, target: int, name: str, state: NodeState
    ) -> bool:
        """Make a directory of the copy if it is new. Return True if its entries are to be followed."""
        if not self._has_room(root, relative, 0):
            return False
        entry, have = self.manifest.get(number, relative), glance(target, name)
        if have is not None:
            return have.is_directory
        if entry is not None:  # the task deleted it
            return False
        os.mkdir(name, 0o700, dir_fd=target)
        set_metadata((target, name), _as_ours(state)._replace(mode=state.mode | 0o700), times=False)
        made = glance(target, name)
        assert made is not None
        self.manifest.put(number, relative, Entry(stamp_of(state), stamp_of(made)))
        return True

    def _follow_leaf(
        self, number: int, root: bytes, relative: bytes, source: int, target: int, name: str, state: NodeState
    ) -> None:
        if not self._has_room(root, relative, state.size):
            return
        entry, have = self.manifest.get(number, relative), glance(target, name)
        if entry is not None and entry.source == stamp_of(state):
            return
        if (entry is None) != (have is None) or (entry and have and entry.copy != stamp_of(have)):
            return  # the task made, changed or deleted it: its version stays, and settlement compares
        with suppress(FileNotFoundError):
            os.unlink(_TEMPORARY, dir_fd=target)
        full = read_state(source, name) or state
        try:
            copy((source, name), _as_ours(full), (target, _TEMPORARY))
        except PermissionError:  # this user may not read it, so a command may not either
            with suppress(FileNotFoundError):
                os.unlink(_TEMPORARY, dir_fd=target)
            return
        os.rename(_TEMPORARY, name, src_dir_fd=target, dst_dir_fd=target)
        made = glance(target, name)
        assert made is not None
        self.manifest.put(number, relative, Entry(stamp_of(state), stamp_of(made)))

    def _remove(self, number: int, directory: bytes, target: int, name: str) -> None:
        """Delete from the copy what the user deleted, where the task has not changed it."""
        relative = directory + b"/" + os.fsencode(name) if directory else os.fsencode(name)
        for path in (*self.manifest.below(number, relative), relative):
            inner = os.fsdecode(path[len(directory) :].lstrip(b"/"))
            with suppress(OSError):  # the task changed what is around it
                state = glance(target, inner)
                assert state is not None
                if self.manifest.is_changed(number, path, state):
                    continue
                if state.is_directory:
                    os.rmdir(inner, dir_fd=target)
                else:
                    os.unlink(inner, dir_fd=target)
                self.manifest.drop(number, path)

    def _has_room(self, root: bytes, relative: bytes, size: int) -> bool:
        if self._paths + 1 > self.limits.paths or self._bytes + size > self.limits.bytes:
            self.left_out.add(printable_path(root + b"/" + relative))
            return False
        self._paths += 1
        self._bytes += size
        return True


def _as_ours(state: NodeState) -> NodeState:
    """Return the state with this user as owner, unless that is root: only root may give files away."""
    return state if os.geteuid() == 0 else state._replace(uid=os.geteuid(), gid=os.getegid())
