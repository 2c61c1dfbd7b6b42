"""Copies a tree of artoo's own with everything that an overlay reads in it: whiteouts and all attributes.

Contents are cloned where the file system can do that. A second hard link becomes a file of its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import MIB
from artoo.workspace.commit.dirfd_ops import copy
from artoo.workspace.fs.stat import (
    DIRECTORY_FLAGS,
    NodeState,
    at,
    chmod_at,
    glance,
    opened_directory,
    with_attributes,
    with_rights,
)

_HAS_XATTRS = hasattr(os, "listxattr")


@dataclass(slots=True)
class CopyBound:
    """What may still be copied. Raises SandboxError through `take` when there is more."""

    paths: int = 50_000
    bytes: int = 1_024 * MIB

    def take(self, state: NodeState) -> None:
        """Count one path."""
        self.paths -= 1
        self.bytes -= state.size
        if self.paths < 0 or self.bytes < 0:
            raise SandboxError("the workspace is too large to be copied, so there is no second solution of it")


Copied = Callable[[bytes, NodeState, NodeState], None]
"""Receives each path below the source, its state there and the state of its copy."""


def _ignore(path: bytes, source: NodeState, target: NodeState) -> None:
    """Ignore a copied path."""


def copy_tree(source: Path, target: Path, bound: CopyBound, copied: Copied = _ignore) -> None:
    """Copy a directory; `target` must not be there. Raises OSError (full disk), SandboxError (too large)."""
    above, into = os.open(source.parent, DIRECTORY_FLAGS), os.open(target.parent, DIRECTORY_FLAGS)
    try:
        state = glance(above, source.name)
        if state is None or not state.is_directory:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        _Copying(bound, copied).directory(above, source.name, into, target.name, state, b"")
    finally:
        os.close(above)
        os.close(into)


class _Copying:
    def __init__(self, bound: CopyBound, copied: Copied) -> None:
        self._bound = bound
        self._copied = copied

    def directory(self, above: int, name: str, into: int, new_name: str, state: NodeState, relative: bytes) -> None:
        self._bound.take(state)
        os.mkdir(new_name, 0o700, dir_fd=into)
        with opened_directory(above, name, state.mode) as here:
            new = os.open(new_name, DIRECTORY_FLAGS, dir_fd=into)
            try:
                for child in os.listdir(here):
                    inner = relative + b"/" + os.fsencode(child) if relative else os.fsencode(child)
                    self._entry(here, child, new, inner)
            finally:
                os.close(new)
        self._dress(above, name, into, new_name, state)
        self._report(into, new_name, state, relative)

    def _entry(self, here: int, name: str, new: int, relative: bytes) -> None:
        state = glance(here, name)
        if state is None:  # a process removed it meanwhile
            return
        if state.is_directory:
            self.directory(here, name, new, name, state, relative)
            return
        self._bound.take(state)
        if stat.S_ISSOCK(_format(here, name)):
            return
        if stat.S_ISREG(_format(here, name)) or stat.S_ISLNK(_format(here, name)):
            with with_rights(here, name, state.mode, stat.S_IRUSR):
                copy((here, name), with_attributes(here, name, state), (new, name))
        else:
            os.mknod(name, _format(here, name) | state.mode, state.rdev, dir_fd=new)
        self._copy_marks(here, name, new, name)
        self._report(new, name, state, relative)

    def _dress(self, above: int, name: str, into: int, new_name: str, state: NodeState) -> None:
        """Give a directory owner, attributes, mode and times, after everything is in it."""
        with suppress(PermissionError):
            os.chown(new_name, state.uid, state.gid, dir_fd=into, follow_symlinks=False)
        self._copy_marks(above, name, into, new_name, everything=True)
        chmod_at(into, new_name, state.mode)
        os.utime(new_name, ns=(state.mtime_ns, state.mtime_ns), dir_fd=into, follow_symlinks=False)

    def _copy_marks(self, above: int, name: str, into: int, new_name: str, *, everything: bool = False) -> None:
        """Copy the overlay's own attributes, or all of them."""
        if not _HAS_XATTRS:
            return
        source, target = at(above, name), at(into, new_name)
        with suppress(OSError):
            for key in os.listxattr(source, follow_symlinks=False):
                if everything or ".overlay." in key:
                    with suppress(PermissionError):
                        os.setxattr(
                            target, key, os.getxattr(source, key, follow_symlinks=False), follow_symlinks=False
                        )

    def _report(self, into: int, name: str, state: NodeState, relative: bytes) -> None:
        made = glance(into, name)
        assert made is not None
        self._copied(relative, state, made)


def _format(directory: int, name: str) -> int:
    return stat.S_IFMT(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
