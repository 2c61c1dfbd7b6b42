"""Programs and modules that artoo takes for itself, and never from where a task may have put them.

PATH and Python's search path are the person's, and both may lead into a project: an environment that is active, a
`.`, an empty entry. What lies there was perhaps written by a task, and would run with artoo's rights. Commands in a
sandbox look on the whole PATH: they have no rights to lose.
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
    """Return the current directory; nothing if it was removed."""
    try:
        return (os.getcwd(),)
    except OSError:
        return ()


_STARTED_IN = _here()


def this_python() -> str:
    """Return the absolute path of this Python. With a relative entry in PATH, `sys.executable` is relative."""
    return os.path.join(*_STARTED_IN, sys.executable)


def own_python(*arguments: str) -> tuple[str, ...]:
    """Return the words that run this Python without modules of the current directory or of a script's own."""
    return (this_python(), "-P", *arguments)


def own_environment() -> dict[str, str]:
    """The person's environment for this Python: an empty entry of PYTHONPATH would be the current directory."""
    environment = dict(os.environ)
    entries = [os.path.abspath(one) for one in environment.pop(_PYTHONPATH, "").split(os.pathsep) if one]
    return {**environment, _PYTHONPATH: os.pathsep.join(entries)} if entries else environment


def worked_in(roots: Roots) -> tuple[str, ...]:
    """Return the directories in which a task makes new files unasked.

    A directory that holds the home is none: there a task may make no file in the hidden part and on the PATH.
    """
    above = frozenset(upwards(str(roots.home)))
    return tuple(one for one in (str(roots.project), str(roots.workspace)) if one not in above)


def search_path(apart: Iterable[str] = ()) -> str:
    """Return PATH without relative entries and without what lies in `apart` or where artoo was started."""
    return os.pathsep.join(_directories(os.environ.get("PATH", os.defpath), _apart(apart)))


def find_program(name: str, apart: Iterable[str] = ()) -> str | None:
    """The program of this name that artoo starts, on `search_path`. Looked up once a process.

    A path is no name: it is that very program.
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
