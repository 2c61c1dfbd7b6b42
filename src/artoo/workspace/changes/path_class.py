"""Classifies where a path lies: functions over real, absolute byte paths, after one look at the user's links.

What may take effect unasked is decided elsewhere, by a positive rule (`silent_rule`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.hidden_paths import Closed
from artoo.sandbox.reading.path_set import PathSet, upwards
from artoo.workspace.changes.start_names import why_not_ordinary
from artoo.workspace.changes.start_places import link_targets, program_places


@dataclass(frozen=True, slots=True)
class Places:
    """The directories that decide a path's class. Real, absolute, as bytes.

    `started`: what the user's links of start-up names lead to, directories of PATH and artoo's own modules: what is
    written there runs without being asked for.
    """

    home: bytes
    workspace: bytes
    project: bytes
    artoo: bytes
    hidden: Closed = field(compare=False)
    started: PathSet = field(default=PathSet(()), compare=False)
    _secrets: dict[str, bool] = field(default_factory=dict[str, bool], compare=False)

    @classmethod
    def of(cls, roots: Roots, artoo_home: Path) -> Places:
        """Look at the user's links and PATH as they are now. Blocking."""
        home, workspace, project, artoo = (
            os.fsencode(os.path.realpath(path)) for path in (roots.home, roots.workspace, roots.project, artoo_home)
        )
        places = cls(home, workspace, project, artoo, Closed.of(roots))
        own = (os.fsdecode(project), os.fsdecode(workspace))
        at_home = os.fsdecode(home)
        found = {*link_targets(at_home, own), *program_places(at_home, own[0], os.fsdecode(artoo))}
        # A link to the whole home or project says nothing about what lies there.
        whole = {above for one in (at_home, *own) for above in upwards(one)}
        return replace(places, started=PathSet(found - whole))

    def classify(self, path: bytes) -> PathClass:
        """Return the class of a real absolute path."""
        if _below(path, self.artoo) is not None:
            return PathClass.ARTOO
        bounds, name = self._bounds(path), os.fsdecode(path)
        if self._is_secret(name):
            return PathClass.SECRET
        if self.started.cover(name):
            return PathClass.PERSISTENCE
        if bounds is not None:
            return bounds
        below_home = _below(path, self.home)
        if below_home is None:
            return PathClass.OUTSIDE
        unusual = bool(below_home) and why_not_ordinary(below_home.split(b"/")) is not None
        return PathClass.PERSISTENCE if unusual else PathClass.HOME

    def _is_secret(self, path: str) -> bool:
        """Ask once for each directory, and for hidden names in it: a hidden directory hides all that it holds."""
        directory, _, name = path.rpartition("/")
        if directory not in self._secrets:
            self._secrets[directory] = self.hidden.covers(directory or "/")
        return self._secrets[directory] or (name.startswith(".") and self.hidden.covers(path))

    def is_hidden(self, path: bytes) -> bool:
        """True if commands and tools may not read a real absolute path (`sandbox.reading.hidden_paths`)."""
        names = self.hidden.names(os.fsdecode(path))
        own = any(_below(os.fsencode(one), self.artoo) is not None for one in names)
        return own or self.hidden.covers(names[0])

    def within_bounds(self, path: bytes) -> bool:
        """True if a path lies in project or output folder, whatever its class."""
        return self._bounds(path) is not None

    def below_bounds(self, path: bytes) -> bytes | None:
        """Return the part of a path below project or output folder; None when it is outside of both."""
        found = self._bounds(path)
        if found is None:
            return None
        return _below(path, self.workspace if found is PathClass.WORKSPACE else self.project)

    def _bounds(self, path: bytes) -> PathClass | None:
        """Return workspace, project or None.

        A project that is the home itself gives no rights over the home's hidden directories; a project or workspace
        that holds the home gives none at all.
        """
        if _below(self.home, self.workspace) is None and _below(path, self.workspace) is not None:
            return PathClass.WORKSPACE
        below_project = _below(path, self.project)
        if below_project is None:
            return None
        if self.home == self.project:
            return PathClass.PROJECT if below_project and not below_project.startswith(b".") else None
        return PathClass.PROJECT if _below(self.home, self.project) is None else None


def _below(path: bytes, directory: bytes) -> bytes | None:
    """Return the part of `path` below `directory`: empty for the directory itself, None when it is elsewhere."""
    if path == directory:
        return b""
    start = directory.rstrip(b"/") + b"/"
    return path[len(start) :] if path.startswith(start) else None
