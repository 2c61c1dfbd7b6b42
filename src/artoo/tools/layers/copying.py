"""A private copy of a tree: bounded, links kept, content shared with the original where the file system can."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB
from artoo.tools.layers.manifest import Base
from artoo.world.nodes import DIRECTORY_FLAGS, FILE_FLAGS, NodeState, open_directory, read_state

_CHUNK = 1 << 20
_DEEPEST = 200
_CLONE = 0x40049409
"""FICLONE: two files share their blocks until one is written to (btrfs, xfs, bcachefs, overlays on them)."""


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """What one copy may hold at most."""

    paths: int = 50_000
    bytes: int = 2_048 * MIB


@dataclass(slots=True)
class TreeCopy:
    """One walk from `source` to `target` (an empty directory). `leave_out` says which paths are not copied.

    `tree` names the tree in the bases that are collected; `bases` and the counters may go on over several trees.
    """

    leave_out: Callable[[bytes], bool]
    limits: CopyLimits = field(default_factory=CopyLimits)
    bases: list[Base] = field(default_factory=list[Base])
    paths: int = 0
    bytes: int = 0
    _tree: str = ""
    _source: bytes = b""
    _twins: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    _target: str = ""

    def run(self, tree: str, source: Path, target: Path) -> None:
        """Copies. Raises SandboxError (too much, unreadable), OSError (disk full)."""
        self._tree, self._source, self._target = tree, os.fsencode(source), os.fspath(target)
        self._twins.clear()
        try:
            below = os.open(source, DIRECTORY_FLAGS)
        except OSError as error:
            raise SandboxError(f"{source} cannot be copied: {error.strerror}") from error
        try:
            into = os.open(target, DIRECTORY_FLAGS)
            try:
                self._directory(below, into, b"")
            finally:
                os.close(into)
        finally:
            os.close(below)

    def _directory(self, source: int, target: int, relative: bytes) -> None:
        if relative.count(b"/") > _DEEPEST:
            raise SandboxError(f"{os.fsdecode(relative[:80])}… nests deeper than {_DEEPEST} directories")
        for name in sorted(os.listdir(source), key=os.fsencode):
            below = _join(relative, os.fsencode(name))
            state = read_state(source, name)
            if state is None:  # gone meanwhile
                continue
            if self.leave_out(self._source + b"/" + below):
                self._note(below, state, copied=False)
                continue
            self._count(state)
            self._entry(source, target, name, below, state)

    def _entry(self, source: int, target: int, name: str, relative: bytes, state: NodeState) -> None:
        if state.is_directory:
            self._subdirectory(source, target, name, relative, state)
        elif state.node is Node.LINK:
            os.symlink(state.target, os.fsencode(name), dir_fd=target)
            self._note(relative, state, content=printable_path(state.target))
        elif state.node is Node.FILE:
            self._file(source, target, name, relative, state)
        else:
            self._note(relative, state, copied=False)

    def _subdirectory(self, source: int, target: int, name: str, relative: bytes, state: NodeState) -> None:
        try:
            below = open_directory(source, name)
        except OSError:  # not ours to read, or replaced meanwhile: then not ours to change either
            self._note(relative, state, copied=False)
            return
        try:
            os.mkdir(name, 0o700, dir_fd=target)
            into = open_directory(target, name)
            try:
                self._note(relative, state)
                self._directory(below, into, relative)
                os.fchmod(into, state.mode)
            finally:
                os.close(into)
        finally:
            os.close(below)

    def _file(self, source: int, target: int, name: str, relative: bytes, state: NodeState) -> None:
        identity = (state.device, state.inode)
        twin = self._twins.get(identity) if state.links > 1 else None
        try:
            content = copy_file(source, name, target, name, state, twin)
        except PermissionError:
            self._note(relative, state, copied=False)
            return
        if twin is None and state.links > 1:
            self._twins[identity] = f"{self._target}/{os.fsdecode(relative)}"
        seen = os.stat(name, dir_fd=target, follow_symlinks=False)
        self._note(relative, state, content=content, stamp=stamp(seen))

    def _count(self, state: NodeState) -> None:
        self.paths += 1
        self.bytes += state.size
        if self.paths > self.limits.paths or self.bytes > self.limits.bytes:
            raise SandboxError(
                f"{os.fsdecode(self._source)} holds more than {self.limits.paths:,} paths or "
                f"{self.limits.bytes / MIB:,.0f} MiB, too much for a copy of its own: give the task a smaller "
                "--project, or raise layers.files and layers.megabytes in the configuration"
            )

    def _note(
        self,
        relative: bytes,
        state: NodeState,
        *,
        content: str = "",
        stamp: tuple[int, int, int] = (0, 0, 0),
        copied: bool = True,
    ) -> None:
        self.bases.append(
            Base(self._tree, printable_path(relative), state.node, state.mode, content, stamp, copied)
        )


def copy_file(source: int, name: str, target: int, as_name: str, state: NodeState, twin: str | None = None) -> str:
    """Copies a regular file with mode and time; sha256 (hex) of its content. `twin`: a copy of the same inode.

    Raises PermissionError when it cannot be read, OSError when it cannot be written.
    """
    reading = os.open(name, FILE_FLAGS, dir_fd=source)
    try:
        if twin is not None:
            os.link(twin, as_name, dst_dir_fd=target, follow_symlinks=False)
            return _digest(reading)
        writing = os.open(as_name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            content = _digest(writing) if _cloned(reading, writing) else _copied(reading, writing)
            os.fchmod(writing, stat.S_IMODE(state.mode))
            os.utime(writing, ns=(state.mtime_ns, state.mtime_ns))
        finally:
            os.close(writing)
        return content
    finally:
        os.close(reading)


def _cloned(reading: int, writing: int) -> bool:
    with contextlib.suppress(OSError):
        fcntl.ioctl(writing, _CLONE, reading)
        return True
    return False


def _copied(reading: int, writing: int) -> str:
    total = hashlib.sha256()
    while data := os.read(reading, _CHUNK):
        total.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(writing, view) :]
    return total.hexdigest()


def _digest(reading: int) -> str:
    total = hashlib.sha256()
    while data := os.read(reading, _CHUNK):
        total.update(data)
    return total.hexdigest()


def stamp(seen: os.stat_result) -> tuple[int, int, int]:
    """What tells whether a copy was touched since: inode, size, time of the last change of any kind."""
    return (seen.st_ino, seen.st_size, seen.st_ctime_ns)


def _join(relative: bytes, name: bytes) -> bytes:
    return relative + b"/" + name if relative else name
