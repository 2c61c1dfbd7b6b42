"""Where programs and modules are found by their name alone: what is new there runs, though nobody asked for it.

A file in a directory of PATH is what the person's next `git` or `ls` may be, and one among artoo's own modules is
artoo the next time that it starts. Both may lie in a project, where an environment or `node_modules` is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.world.path_set import upwards


@dataclass(frozen=True, slots=True)
class SearchPaths:
    """Real, absolute paths. `programs`: the directories of PATH, and where npx looks. `ways`: what is not there yet
    of a way to one, or to a module: a link there would lead elsewhere. `modules`: the trees of artoo's own."""

    programs: frozenset[bytes] = frozenset()
    ways: frozenset[bytes] = frozenset()
    modules: frozenset[str] = frozenset()

    @classmethod
    def of(cls, project: str, artoo_home: str) -> SearchPaths:
        """As they are now. What is relative in PATH is so to the project, where the person stands.

        npx takes a program from any `node_modules` above where it starts, and servers start in artoo's home.
        """
        named = [os.path.join(project, one) for one in os.environ.get("PATH", os.defpath).split(os.pathsep)]
        packages = (f"{above}/node_modules/.bin" for above in upwards(artoo_home) if above != "/")
        programs = frozenset(_real((*named, *packages)))
        modules = _own_modules(tuple(sys.path))
        ways = frozenset(map(os.fsencode, _missing((*programs, *modules))))
        return cls(frozenset(map(os.fsencode, programs)), ways, modules)

    def find(self, path: bytes) -> bool:
        """Whether a path is looked at by name in a directory of PATH, or would be the way there."""
        return path.rpartition(b"/")[0] in self.programs or path in self.ways


@lru_cache(maxsize=4)
def _own_modules(searched: tuple[str, ...]) -> frozenset[str]:
    """Where these lead: the environment that artoo runs in, what this Python looks through, and artoo itself.

    Where a program lies that uses artoo as a library is its own affair: often that is the project.
    """
    environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
    started = getattr(sys.modules.get("__main__"), "__file__", None)
    script = os.path.dirname(os.path.abspath(started)) if started else None
    absolute = (one for one in searched if os.path.isabs(one) and one != script)
    return frozenset(_real((*environment, *absolute, str(Path(__file__).parent.parent))))


def _real(paths: Iterable[str]) -> Iterator[str]:
    """Each where it leads, and by its own name in the directory where that is."""
    for path in map(os.path.normpath, paths):
        parent, name = os.path.split(path)
        here = os.path.join(os.path.realpath(parent), name)
        yield from (here, os.path.realpath(here)) if os.path.islink(here) else (here,)


def _missing(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        while not os.path.lexists(path):
            yield path
            path = os.path.dirname(path)
