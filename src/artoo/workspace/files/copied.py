"""Files of a workspace that is a plain copy: covered real directories are read from their copies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from artoo.workspace.directory import Covered
from artoo.workspace.files.rooted import PRIVATE, LocatedFiles, locate_real
from artoo.workspace.fs.stat import PASS_FLAGS


class CopyFiles(LocatedFiles):
    """The user's files with copies in the place of covered directories; a copy's own path means the same file.

    Commands see a copy under the copy's path, so a link that they make may name that path. Their /tmp is `scratch`,
    but for what is in the machine's /tmp and not in it.
    """

    def __init__(self, covered: Iterable[Covered], scratch: Path) -> None:
        self._scratch = os.open(scratch, PASS_FLAGS)
        self._roots = sorted(
            ((str(one.root), one.place) for one in covered), key=lambda one: len(one[0]), reverse=True
        )
        self._descriptors = {place: os.open(place, PASS_FLAGS) for _, place in self._roots}

    def locate(self, path: str) -> tuple[int, str]:
        """See LocatedFiles."""
        for root, place in self._roots:
            for start in (root, str(place)):
                if path == start or path.startswith(f"{start}/"):
                    return self._descriptors[place], path[len(start) :]
        for private in PRIVATE:
            if path.startswith(f"{private}/"):
                below = path[len(private) + 1 :]
                name = below.partition("/")[0]
                if _is_there(self._scratch, name) or not os.path.lexists(f"{private}/{name}"):
                    return self._scratch, below
        return locate_real(path)

    def resolve(self, path: Path) -> Path:
        """See Files. The result names real directories, never a copy."""
        text = str(super().resolve(path))
        for root, place in self._roots:
            if text == str(place) or text.startswith(f"{place}/"):
                return Path(root + text[len(str(place)) :])
        return Path(text)

    def close(self) -> None:
        """Close the descriptors. To be called once."""
        for descriptor in (*self._descriptors.values(), self._scratch):
            os.close(descriptor)


def _is_there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
