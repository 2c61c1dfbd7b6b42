"""Deletes a directory tree of artoo's own, however deep it is and whatever modes a command left in it.

Not `shutil.rmtree`: before Python 3.13 it recurses, and its error hook needs whole paths. A command may nest deeper
than Python recurses and than a path may be long.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from artoo.workspace.fs.stat import DIRECTORY_FLAGS, chmod_at

_PASS_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class _Level(NamedTuple):
    """A directory on the way down: its name, the identity of the one above, and the names left to do there."""

    name: str
    above: tuple[int, int]
    left: list[str]


def remove_tree(path: Path) -> None:
    """Delete what is at `path` without following links. Nothing there is no error.

    Raises OSError; the call can be repeated then, and after a crash.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    here = os.open(path.parent, _PASS_FLAGS)
    left, way = [path.name], list[_Level]()
    try:
        while left or way:
            if left:
                name = left.pop()
                inside = _enter(here, name)
                if inside is None:
                    continue
                way.append(_Level(name, _identity(here), left))
                os.close(here)
                here = inside
                left = _remove_leaves(here)
            else:
                level = way.pop()
                above = os.open("..", _PASS_FLAGS, dir_fd=here)
                os.close(here)
                here = above
                _remove(here, level)
                left = level.left
    finally:
        os.close(here)


def _enter(directory: int, name: str) -> int | None:
    """Open a directory and give its owner all rights; None when it is gone."""
    try:
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        return None
    except PermissionError:
        chmod_at(directory, name, 0o700)
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
    if os.fstat(descriptor).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(PermissionError):  # another user's: its entries can be deleted, or the system says so
            os.fchmod(descriptor, 0o700)
    return descriptor


def _remove_leaves(directory: int) -> list[str]:
    """Delete everything but directories, and return their names."""
    directories: list[str] = []
    with os.scandir(directory) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
                continue
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=directory)
    return directories


def _remove(directory: int, level: _Level) -> None:
    """Delete an empty directory from the one above."""
    if _identity(directory) != level.above:
        raise OSError(errno.ESTALE, "was moved while it was being removed", level.name)
    with suppress(FileNotFoundError):
        os.rmdir(level.name, dir_fd=directory)


def _identity(descriptor: int) -> tuple[int, int]:
    seen = os.fstat(descriptor)
    return seen.st_dev, seen.st_ino
