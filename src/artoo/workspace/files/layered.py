"""Read a resting workspace's files without a sandbox, with overlay layers merged, or from copies.

This is needed because a review may happen days after the task, when no overlay is mounted. Upper directories are
read in this way only while no process of the task runs, which is before its first command and at settlement. Copies
are always read in this way.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from artoo.sandbox.reading.path_set import inside
from artoo.workspace.directory import Covered, WorkspaceDirectory
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.files.rooted import PRIVATE, LocatedFiles, locate_real, names_at, real_files
from artoo.workspace.fs.stat import DIRECTORY_FLAGS, PASS_FLAGS, closing_descriptor, glance, is_opaque, is_whiteout

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class _CoveringFiles(LocatedFiles):
    """The user's files, except that covered directories and /tmp are those of the workspace."""

    def __init__(self, covered: tuple[Covered, ...], scratch: Path) -> None:
        deepest_first = sorted(covered, key=lambda one: len(one.root.parts), reverse=True)
        self._places = [(str(one.root), str(one.place), os.open(one.place, PASS_FLAGS)) for one in deepest_first]
        self._scratch = os.open(scratch, PASS_FLAGS) if scratch.is_dir() else -1

    def close(self) -> None:
        """Close the descriptors. This may be called only once."""
        for descriptor in (*(one for _, _, one in self._places), self._scratch):
            if descriptor >= 0:
                os.close(descriptor)


class CopyFiles(_CoveringFiles):
    """The user's files, except that covered directories are replaced by their copies. A path into the copy itself
    means the same file as the real path.

    Commands see a copy under the copy's path, so links that they make may contain that path. Their /tmp is the
    workspace's own. A name that exists only in the machine's /tmp is read there.
    """

    def locate(self, path: str) -> tuple[int, str]:
        for root, place, descriptor in self._places:
            for start in (root, place):
                if inside(path, start):
                    return descriptor, path[len(start) :]
        for private in PRIVATE:
            if inside(path, private) and path != private:
                below = path[len(private) + 1 :]
                name = below.partition("/")[0]
                if glance(self._scratch, name) is not None or not os.path.lexists(f"{private}/{name}"):
                    return self._scratch, below
        return locate_real(path)

    def resolve(self, path: Path) -> Path:
        """Resolve links. The result is a path in the real directories, never in a copy."""
        text = str(super().resolve(path))
        for root, place, _ in self._places:
            if inside(text, place):
                return Path(root + text[len(place) :])
        return Path(text)


class LayeredFiles(_CoveringFiles):
    """The files as commands saw them. A whiteout hides a name, and an opaque directory hides the real directory of
    the same path."""

    def locate(self, path: str) -> tuple[int, str]:
        for root, _, upper in self._places:
            if inside(path, root):
                below = path[len(root) :].strip("/")
                in_upper, hidden = _look(upper, below)
                if hidden and not in_upper:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                return (upper, below) if in_upper else locate_real(path)
        for private in PRIVATE if self._scratch >= 0 else ():
            if inside(path, private):
                return self._scratch, path[len(private) :]
        return locate_real(path)

    def _names(self, directory: str) -> list[str]:
        at, below = self.locate(directory)
        names = names_at(at, below)
        if all(upper != at for _, _, upper in self._places):
            return names
        with closing_descriptor(open_beneath(at, below, DIRECTORY_FLAGS)) as here:
            deleted = {name for name in names if (state := glance(here, name)) is not None and is_whiteout(state)}
        lower = set[str]() if _look(at, below)[1] else _real_names(directory)
        return [*(name for name in names if name not in deleted), *(lower - set(names))]


def offline_files(directory: WorkspaceDirectory) -> LocatedFiles:
    """Return the files of a workspace of either kind, read without a sandbox. Raises SandboxError, OSError."""
    covered = directory.covered()
    if not covered:
        return real_files()
    kind = LayeredFiles if directory.record().is_overlay else CopyFiles
    return kind(covered, directory.scratch)


def _look(upper: int, below: str) -> tuple[bool, bool]:
    """Return whether an upper directory contains a path, and whether it hides the real path and everything below
    it."""
    here, hidden = os.dup(upper), False
    try:
        names = below.split("/") if below else []
        for number, name in enumerate(names):
            state = glance(here, name)
            if state is None or is_whiteout(state):
                return False, hidden or state is not None
            last = number == len(names) - 1
            if not state.is_directory:
                return last, True  # a file has nothing below it
            hidden = hidden or is_opaque(here, name)
            if not last:
                inner = os.open(name, PASS_FLAGS, dir_fd=here)
                os.close(here)
                here = inner
        return True, hidden
    finally:
        os.close(here)


def _real_names(directory: str) -> set[str]:
    """Return the names in the real directory; empty if it is missing or not a directory."""
    try:
        return set(names_at(*locate_real(directory)))
    except OSError as error:
        if error.errno in _NOT_THERE:
            return set()
        raise
