"""Read the states of many absolute paths with open directory descriptors, without links."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

from artoo.contracts.changes import Node
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.files.rooted import locate_real, names_at
from artoo.workspace.fs.stat import PASS_FLAGS, NodeState, digest_file, glance, read_state

Place = tuple[int, str]
"""An open directory and a name in it."""
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The errors for a path with a missing component or a link in it. Such a path counts as missing."""


class Walker:
    """Reads the states of paths, of the user's files or of other files through their `locate`. Paths are strings
    for the os module, of any length.

    The directory of the last path stays open for the next path. Use one walker only for one pass over sorted paths,
    because it does not notice if a directory is replaced meanwhile.
    """

    def __init__(self, locate: Callable[[str], tuple[int, str]] = locate_real) -> None:
        self._locate = locate
        self._at: str | None = None
        self._descriptor = -1  # descriptor of the directory `_at`, or -1 if that is missing

    def directory(self, path: str) -> int:
        """Return a descriptor of a directory, valid until the next call. Raises OSError, including for a link."""
        if path != self._at or self._descriptor < 0:
            self.close()
            self._at = path
            self._descriptor = open_beneath(*self._locate(path), PASS_FLAGS)
        return self._descriptor

    def place(self, path: str) -> Place:
        """Return the open directory that holds a path, and its name there. Raises OSError."""
        above, _, name = path.rpartition("/")
        return self.directory(above or "/"), name or "."

    def look(self, path: str, *, attributes: bool = True) -> NodeState | None:
        """Return the state of a path. Return None if the path does not exist, or if a parent of it is missing or a
        link.

        Raises OSError, including PermissionError.
        """
        above, _, name = path.rpartition("/")
        if self._at == (above or "/") and self._descriptor < 0:
            return None
        try:
            directory = self.directory(above or "/")
            return read_state(directory, name or ".") if attributes else glance(directory, name or ".")
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            self._at = None
            raise

    def read(self, path: str) -> NodeState | None:
        """Return the state of a path. Return None if the path is missing or this user may not read it."""
        with suppress(OSError):
            return self.look(path)
        return None

    def digest(self, path: str, state: NodeState) -> str | None:
        """Return the sha256 of a file; None for other objects, and for a file that cannot be read."""
        if state.node is Node.FILE:
            with suppress(OSError):
                return digest_file(*self.place(path), state.size)
        return None

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if it is missing or this user may not read it."""
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            return sorted(names_at(*self._locate(path)), key=os.fsencode)
        return []

    def close(self) -> None:
        """Close the directory."""
        descriptor, self._descriptor, self._at = self._descriptor, -1, None
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Walker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
