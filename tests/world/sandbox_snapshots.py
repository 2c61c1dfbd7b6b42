"""Fingerprints of trees, to compare them."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

Entry = tuple[object, ...]


def attributes(path: Path) -> list[str]:
    """The names of a user's own attributes of a path; links have none, and of a closed file they are not told."""
    if path.is_symlink() or not os.access(path, os.R_OK):
        return []
    return sorted(name for name in os.listxattr(path) if name.startswith("user."))


def _digest(path: Path) -> str:
    """Of the content, sha256 in hex; a plain user's own file may be closed to its owner."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        return "closed"


def snapshot(root: Path, *, times: bool = False, identity: bool = False, skip: str = ".artoo") -> dict[str, Entry]:
    """Every path below `root`: kind, mode, owner, content or target, attributes; time, inode if asked."""
    found: dict[str, Entry] = {}
    for directory, names, files in os.walk(root, followlinks=False):
        if skip in names and Path(directory) == root:
            names.remove(skip)
        for name in [*names, *files]:
            path = Path(directory) / name
            seen = path.lstat()
            entry: Entry = (stat.S_IFMT(seen.st_mode), stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid)
            if stat.S_ISREG(seen.st_mode):
                entry += (_digest(path),)
            elif stat.S_ISLNK(seen.st_mode):
                entry = (entry[0], os.readlink(path))
            entry += tuple((name, os.getxattr(path, name)) for name in attributes(path))
            if times and (identity or not stat.S_ISDIR(seen.st_mode)):
                entry += (seen.st_mtime_ns,)
            if identity:
                entry += (seen.st_ino, seen.st_nlink)
            found[os.path.relpath(path, root)] = entry
    return found
