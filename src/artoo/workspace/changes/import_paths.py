"""Finds where programs and modules are started by name: a new file there may run although nobody asked for it.

A file in a directory of PATH may be the user's next `git` or `ls`, and a file among artoo's own modules is part of
artoo at its next start. Both may lie in a project that holds an environment or `node_modules`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.sandbox.reading.path_set import upwards


@dataclass(frozen=True, slots=True)
class SearchPaths:
    """Real, absolute paths. `programs`: the directories of PATH, and where npx looks. `ways`: missing directories
    on the way to one, or to a module: a link made there would lead elsewhere. `modules`: artoo's own trees."""

    programs: frozenset[bytes] = frozenset()
    ways: frozenset[bytes] = frozenset()
    modules: frozenset[str] = frozenset()

    @classmethod
    def of(cls, project: str, artoo_home: str) -> SearchPaths:
        """Read them now. Relative entries of PATH count from the project, the user's current directory.

        npx takes a program from any `node_modules` above where it starts, and servers start in artoo's home.
        """
        named = [os.path.join(project, one) for one in os.environ.get("PATH", os.defpath).split(os.pathsep)]
        packages = (f"{above}/node_modules/.bin" for above in upwards(artoo_home) if above != "/")
        programs = frozenset(_real((*named, *packages)))
        modules = _own_modules(tuple(sys.path))
        ways = frozenset(map(os.fsencode, _missing((*programs, *modules))))
        return cls(frozenset(map(os.fsencode, programs)), ways, modules)

    def find(self, path: bytes) -> bool:
        """True if a path lies directly in a directory of PATH, or is a missing step on the way to one."""
        return path.rpartition(b"/")[0] in self.programs or path in self.ways


@lru_cache(maxsize=4)
def _own_modules(searched: tuple[str, ...]) -> frozenset[str]:
    """Return where these lead: artoo's environment, the import path of this Python, and artoo's own package.

    The directory of a program that uses artoo as a library is left out: often that is the project.
    """
    environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
    started = getattr(sys.modules.get("__main__"), "__file__", None)
    script = os.path.dirname(os.path.abspath(started)) if started else None
    absolute = (one for one in searched if os.path.isabs(one) and one != script)
    return frozenset(_real((*environment, *absolute, str(Path(__file__).parent.parent.parent))))


def _real(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path as it is named in its real directory, and where it leads."""
    for path in map(os.path.normpath, paths):
        parent, name = os.path.split(path)
        here = os.path.join(os.path.realpath(parent), name)
        yield from (here, os.path.realpath(here)) if os.path.islink(here) else (here,)


def _missing(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        while not os.path.lexists(path):
            yield path
            path = os.path.dirname(path)
