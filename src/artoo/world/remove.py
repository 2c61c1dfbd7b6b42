"""Removes a tree of artoo's own, however deep it is and whatever modes a command left behind.

Not `shutil.rmtree`: before Python 3.13 it recurses, and its hook for errors needs whole paths. A command may nest
deeper than Python recurses and than a path may be long, and what cannot be removed would stop every later task.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from artoo.world.files import set_mode
from artoo.world.nodes import DIRECTORY_FLAGS

_PASS_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class _Level(NamedTuple):
    """A directory on the way down: its name in the one above, which one that is, what is left to do there."""

    name: str
    above: tuple[int, int]
    left: list[str]


def remove_tree(path: Path) -> None:
    """Removes what is at `path` without following links; nothing there is well.

    Raises OSError; then, or after a crash, what is left stands where it stood, and it can be repeated.
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
                inside = _entered(here, name)
                if inside is None:
                    continue
                way.append(_Level(name, _identity(here), left))
                os.close(here)
                here = inside
                left = _directories_left(here)
            else:
                level = way.pop()
                above = os.open("..", _PASS_FLAGS, dir_fd=here)
                os.close(here)
                here = above
                _remove(here, level)
                left = level.left
    finally:
        os.close(here)


def _entered(directory: int, name: str) -> int | None:
    """The directory of that name, opened, and open to its owner; None when it is gone."""
    try:
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
    except FileNotFoundError:
        return None
    except PermissionError:
        set_mode(directory, name, 0o700)
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=directory)
    if os.fstat(descriptor).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(PermissionError):  # another's: what it holds can be removed, or the system says so
            os.fchmod(descriptor, 0o700)
    return descriptor


def _directories_left(directory: int) -> list[str]:
    """The directories in it, after everything else is removed."""
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
    """Removes a directory that is empty, from the one above."""
    if _identity(directory) != level.above:
        raise OSError(errno.ESTALE, "was moved while it was being removed", level.name)
    with suppress(FileNotFoundError):
        os.rmdir(level.name, dir_fd=directory)


def _identity(descriptor: int) -> tuple[int, int]:
    seen = os.fstat(descriptor)
    return seen.st_dev, seen.st_ino
