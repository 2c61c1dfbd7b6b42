"""Find git, Python and other programs on a safe PATH, never in a directory that a task could write.

The user's PATH and Python's search path may include a project. The reason is an active environment, a `.` or an
empty entry. A task may have written a program there, and this program would run with artoo's rights. Commands in a
sandbox nevertheless use the whole PATH, because they are confined.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.path_set import PathSet, upwards

_PYTHONPATH = "PYTHONPATH"


def _here() -> tuple[str, ...]:
    """Return the current directory, or no path if it was removed."""
    try:
        return (os.getcwd(),)
    except OSError:
        return ()


_STARTED_IN = _here()


def this_python() -> str:
    """Return the absolute path of this Python. `sys.executable` itself is relative if the entry in PATH is
    relative."""
    return os.path.join(*_STARTED_IN, sys.executable)


def own_python(*arguments: str) -> tuple[str, ...]:
    """Return the arguments that run this Python so that it imports no modules from the current directory or that of
    the script."""
    return (this_python(), "-P", *arguments)


def own_environment() -> dict[str, str]:
    """Return the user's environment for this Python. Empty entries of PYTHONPATH, which mean the current directory,
    are removed."""
    environment = dict(os.environ)
    entries = [os.path.abspath(one) for one in environment.pop(_PYTHONPATH, "").split(os.pathsep) if one]
    return {**environment, _PYTHONPATH: os.pathsep.join(entries)} if entries else environment


def worked_in(roots: Roots) -> tuple[str, ...]:
    """Return the directories in which a task may make new files without approval.

    A directory that contains the home is left out. New files in the hidden part of the home, and in directories of
    PATH, need approval anyway.
    """
    above = frozenset(upwards(str(roots.home)))
    return tuple(one for one in (str(roots.project), str(roots.workspace)) if one not in above)


def search_path(apart: Iterable[str] = ()) -> str:
    """Return PATH without its relative entries. Directories in `apart`, and those in the current directory, are
    removed too."""
    return os.pathsep.join(_directories(os.environ.get("PATH", os.defpath), _apart(apart)))


def find_program(name: str, apart: Iterable[str] = ()) -> str | None:
    """Return the path of a program that artoo itself will run. It is searched in `search_path`. The result is
    cached for this process.

    If `name` is a path, exactly that program is used.
    """
    if os.path.dirname(name):
        return shutil.which(name)
    return _found(name, os.environ.get("PATH", os.defpath), _apart(apart))


def _apart(places: Iterable[str]) -> tuple[str, ...]:
    above = frozenset(upwards(os.path.realpath(os.path.expanduser("~"))))
    return tuple(real for one in (*places, *_here()) if (real := os.path.realpath(one)) not in above)


def _directories(path: str, apart: tuple[str, ...]) -> Iterator[str]:
    closed = PathSet(apart)
    for one in path.split(os.pathsep):
        names = (os.path.normpath(one), os.path.realpath(one))
        if os.path.isabs(one) and not any(map(closed.cover, names)):
            yield one


@lru_cache(maxsize=64)
def _found(name: str, path: str, apart: tuple[str, ...]) -> str | None:
    closed = PathSet(apart)
    for directory in _directories(path, apart):
        program = shutil.which(name, path=directory)
        if program is not None and not closed.cover(os.path.realpath(program)):
            return program
    return None
