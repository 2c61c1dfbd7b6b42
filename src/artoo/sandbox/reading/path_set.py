"""A set of paths with fast lookup of ancestors and outermost members.

The time of a lookup depends on the depth of the path and not on the size of the set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


class PathSet:
    """A set of absolute, resolved paths as text."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(path.rstrip("/") or "/" for path in paths)
        above = {"/"} if self._paths else set[str]()
        for path in self._paths:
            while path not in above:
                above.add(path)
                path = path[: path.rfind("/")] or "/"
        self._above = above

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def cover(self, path: str) -> bool:
        """Check whether `path` is in the set, or is below a path in the set."""
        return bool(self._paths) and not self._paths.isdisjoint(upwards(path))

    def existing(self) -> list[str]:
        """Return the paths of the set that exist."""
        return [path for path in sorted(self._paths) if os.path.lexists(path)]

    def lie_in(self, path: str) -> bool:
        """Check whether `path` is in the set, or contains a path in the set."""
        return path in self._above


def inside(path: str, directory: str) -> bool:
    """True if `path` is `directory` or below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def upwards(path: str) -> list[str]:
    """Return a path and all its parents, the root last."""
    found: list[str] = []
    while len(path) > 1:
        found.append(path)
        path = path[: path.rfind("/")]
    return [*found, "/"]


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are not inside another one of the paths. Those with few parents come first."""
    chosen: dict[str, None] = {}
    for _, path in sorted((path.count("/"), path) for path in paths):
        if chosen.keys().isdisjoint(upwards(path)):
            chosen[path] = None
    return tuple(chosen)
