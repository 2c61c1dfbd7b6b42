"""Hide from tools the paths that commands cannot read.

To tools, such paths do not exist.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from artoo.ports.workspace import Files, FileStat
from artoo.workspace.changes.path_class import Places


@dataclass(frozen=True, slots=True)
class VisibleFiles:
    """A view of `files` without the hidden paths. Implements `ports.workspace.Files`.

    A running sandbox hides these paths itself. This class hides them while no sandbox runs, that is, before the
    first command and at a review.
    """

    files: Files
    places: Places

    def resolve(self, path: Path) -> Path:
        return self.files.resolve(path)

    def stat(self, path: Path) -> FileStat | None:
        return None if self._hides(path) else self.files.stat(path)

    def open(self, path: Path) -> BinaryIO:
        """Open a file of `files`. Raises PermissionError for a hidden path."""
        self._require(path)
        return self.files.open(path)

    def readlink(self, path: Path) -> Path:
        """Read a link of `files`. Raises PermissionError for a hidden path."""
        self._require(path)
        return self.files.readlink(path)

    def names(self, directory: Path) -> tuple[str, ...]:
        """List a directory of `files`. Raises PermissionError for a hidden path."""
        self._require(directory)
        return self.files.names(directory)

    def _hides(self, path: Path) -> bool:
        return self.places.is_hidden(os.fsencode(path))

    def _require(self, path: Path) -> None:
        if self._hides(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
