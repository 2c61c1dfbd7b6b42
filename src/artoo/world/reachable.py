"""The files of a view as tools may see them: what is closed to commands is not there for tools either."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.world import Files
from artoo.world.classify import Places


@dataclass(frozen=True, slots=True)
class ReachableFiles:
    """`files` without what is closed. Implements `ports.world.Files`."""

    files: Files
    places: Places

    def resolve(self, path: Path) -> Path:
        """See Files."""
        return self.files.resolve(path)

    def at(self, path: Path) -> Path | None:
        """See Files."""
        return None if self.places.is_closed(os.fsencode(path)) else self.files.at(path)

    def names(self, directory: Path) -> tuple[str, ...]:
        """See Files. Raises PermissionError for what is closed."""
        if self.places.is_closed(os.fsencode(directory)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))
        return self.files.names(directory)
