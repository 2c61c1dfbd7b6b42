"""Files of an overlay workspace while no sandbox lives: upper directories over the real ones, read without a mount.

A review may come days after the task. Only settlement reads so, when no process of the task runs.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from artoo.workspace.directory import Covered, WorkspaceDirectory, WorkspaceKind
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.files.copied import CopyFiles
from artoo.workspace.files.rooted import PRIVATE, LocatedFiles, locate_real, real_files
from artoo.workspace.fs.stat import PASS_FLAGS, glance, is_opaque, is_whiteout


class LayeredFiles(LocatedFiles):
    """The files as commands saw them: a whiteout hides a name, an opaque directory everything of the real one."""

    def __init__(self, covered: tuple[Covered, ...], scratch: Path) -> None:
        deepest_first = sorted(covered, key=lambda one: len(one.root.parts), reverse=True)
        self._uppers = [(str(one.root), os.open(one.place, PASS_FLAGS)) for one in deepest_first]
        self._scratch = os.open(scratch, PASS_FLAGS) if scratch.is_dir() else None

    def locate(self, path: str) -> tuple[int, str]:
        """See LocatedFiles."""
        for root, upper in self._uppers:
            if _inside(path, root):
                below = path[len(root) :].strip("/")
                in_upper, hidden = _look(upper, below)
                if in_upper:
                    return upper, below
                if hidden:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                return locate_real(path)
        for private in PRIVATE if self._scratch is not None else ():
            if _inside(path, private):
                assert self._scratch is not None
                return self._scratch, path[len(private) :]
        return locate_real(path)

    def _names(self, directory: str) -> list[str]:
        for root, upper in self._uppers:
            if _inside(directory, root):
                return self._merged(upper, directory, directory[len(root) :].strip("/"))
        return super()._names(directory)

    def _merged(self, upper: int, directory: str, below: str) -> list[str]:
        in_upper, hidden = _look(upper, below)
        if not in_upper:
            return super()._names(directory)
        here = open_beneath(upper, below, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            marked = dict[str, bool]()
            for name in os.listdir(here):
                state = glance(here, name)
                marked[name] = state is not None and is_whiteout(state)
            lower = [] if hidden or is_opaque(here, ".") else _real_names(directory)
        finally:
            os.close(here)
        shown = {name for name, deleted in marked.items() if not deleted}
        return [*shown, *(name for name in lower if name not in marked)]

    def close(self) -> None:
        """Close the descriptors. To be called once."""
        for _, upper in self._uppers:
            os.close(upper)
        if self._scratch is not None:
            os.close(self._scratch)


def offline_files(directory: WorkspaceDirectory) -> LocatedFiles:
    """Return the files of a workspace without a sandbox, whatever its kind. Raises SandboxError, OSError."""
    covered = directory.covered()
    if not covered:
        return real_files()
    if directory.record().kind is WorkspaceKind.COPY:
        return CopyFiles(covered, directory.scratch)
    return LayeredFiles(covered, directory.scratch)


def _look(upper: int, below: str) -> tuple[bool, bool]:
    """Return whether the upper directory holds a path, and whether it hides the real one (and what is below it)."""
    if not below:
        return True, False
    here, hidden = os.dup(upper), False
    try:
        *above, last = below.split("/")
        for name in above:
            state = glance(here, name)
            if state is None:
                return False, hidden
            if not stat.S_ISDIR(_mode(here, name)):
                return False, True  # a whiteout or a file: nothing is below it
            hidden = hidden or is_opaque(here, name)
            inner = os.open(name, PASS_FLAGS, dir_fd=here)
            os.close(here)
            here = inner
        state = glance(here, last)
        if state is None:
            return False, hidden
        if is_whiteout(state):
            return False, True
        return True, hidden or not state.is_directory
    finally:
        os.close(here)


def _mode(directory: int, name: str) -> int:
    return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode


def _real_names(directory: str) -> list[str]:
    """Return the names of the real directory; none where it is missing, or is no directory."""
    try:
        here = open_beneath(*locate_real(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return []
        raise
    try:
        return os.listdir(here)
    finally:
        os.close(here)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")
