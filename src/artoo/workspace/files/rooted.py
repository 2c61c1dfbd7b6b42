"""Read files below one root descriptor, with links resolved and private /tmp.

The root is that of the running sandbox, or the user's own `/`.

Links in a path are resolved one after the other. The resolved path is then opened for reading without following
links (`beneath`). If a link appears in between, this causes an error, so the path cannot lead out of the root.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import BinaryIO

from artoo.ports.workspace import FileStat
from artoo.workspace.files.beneath import open_beneath, open_file_beneath, readlink_beneath, stat_beneath
from artoo.workspace.fs.stat import DIRECTORY_FLAGS, closing_descriptor

PRIVATE = ("/tmp", "/var/tmp")
"""The directories that commands do not see, because the workspace's own scratch directory is in their place."""
_MOST_LINKS = 40
"""The maximum number of links in one path, as in the kernel."""


class LocatedFiles(ABC):
    """Files that are accessed relative to directory descriptors. Implements `ports.workspace.Files`."""

    @abstractmethod
    def locate(self, path: str) -> tuple[int, str]:
        """Return a directory descriptor and the path below it. Raises FileNotFoundError for a hidden path."""

    def close(self) -> None:  # noqa: B027  # optional, because most implementations own no descriptor
        """Close the descriptors that these files own. Call this once."""

    def resolve(self, path: Path) -> Path:
        text = str(path)
        seen = self._stat(text) if "/.." not in text else None
        return path if seen is not None and not stat.S_ISLNK(seen.st_mode) else Path(self._resolve(text))

    def stat(self, path: Path) -> FileStat | None:
        seen = self._stat(str(path))
        if seen is None:
            return None
        return FileStat(seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)

    def open(self, path: Path) -> BinaryIO:
        return os.fdopen(open_file_beneath(*self.locate(str(path))), "rb")

    def readlink(self, path: Path) -> Path:
        return Path(readlink_beneath(*self.locate(str(path))))

    def names(self, directory: Path) -> tuple[str, ...]:
        return tuple(sorted(self._names(str(directory)), key=os.fsencode))

    def _names(self, directory: str) -> list[str]:
        return names_at(*self.locate(directory))

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return stat_beneath(*self.locate(path))
        except OSError:  # to the caller, a path that is not accessible does not exist
            return None

    def _resolve(self, path: str) -> str:
        """Resolve links by the kernel's rules. Raises OSError (ELOOP) for a loop."""
        here, links = "/", 0
        to_go = path.split("/")[::-1]
        while to_go:
            part = to_go.pop()
            if part in ("", "."):
                continue
            if part == "..":
                here = here.rpartition("/")[0] or "/"
                continue
            ahead = f"{here.rstrip('/')}/{part}"
            target = self._target(ahead)
            if target is None:
                here = ahead
                continue
            # Like the kernel, this counts all links of a path together, not those of each chain.
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                here = "/"
            to_go += target.split("/")[::-1]
        return here

    def _target(self, path: str) -> str | None:
        """Return a link's target text, or None if the path is not a link or does not exist."""
        seen = self._stat(path)
        if seen is None or not stat.S_ISLNK(seen.st_mode):
            return None
        try:
            return os.fspath(self.readlink(Path(path)))
        except OSError:  # the link was replaced meanwhile
            return None


class RootedFiles(LocatedFiles):
    """The files below `root`, a directory descriptor. The descriptor is duplicated, so its owner may close it
    earlier."""

    def __init__(self, root: int) -> None:
        self._root = os.dup(root)

    def locate(self, path: str) -> tuple[int, str]:
        """Return the root and the path. Raises OSError (EBADF) after `close`."""
        return self._root, path

    def close(self) -> None:
        """Close the root. The number of the descriptor is not used afterwards, because it may then refer to another
        directory."""
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)


class RealFiles(LocatedFiles):
    """The user's files on disk. The processes in /proc are left out, because they would expose artoo's own
    environment."""

    def locate(self, path: str) -> tuple[int, str]:
        return locate_real(path)


def names_at(root: int, path: str) -> list[str]:
    """Return the names in the directory at a path below a descriptor. Raises OSError."""
    with closing_descriptor(open_beneath(root, path, DIRECTORY_FLAGS)) as descriptor:
        return os.listdir(descriptor)


def locate_real(path: str) -> tuple[int, str]:
    """Return the real root and the path. Raises FileNotFoundError for the processes in /proc."""
    if path.startswith("/proc/") and _PROCESS.match(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return _real_root(), path


_PROCESS = re.compile(r"/proc/(\d+|self|thread-self)(/|$)")


@cache
def real_files() -> RealFiles:
    """Return the user's files on disk. All callers share one instance."""
    return RealFiles()


@cache
def _real_root() -> int:
    """Return a descriptor of the real root directory, which stays open until the process ends."""
    return os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
