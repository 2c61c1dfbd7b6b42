"""Where the names of a person's repository stand, read from git's own files: git itself is not asked."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from artoo.world.git_layout import is_repository, read_file
from artoo.world.union import RealFiles

_COMMIT = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\s*")
_SMALL = 4096
_NAMES = b"/refs/"


def head_of(project: Path) -> str | None:
    """The commit at which the repository of a project stands; None where there is none, or it cannot be read here
    (a linked worktree, a table of names)."""
    files = RealFiles()
    for above in (project, *project.parents):
        repository = above / ".git"
        if is_repository(repository, files):
            head = read_file(repository / "HEAD", _SMALL) or b""
            start, _, name = head.strip().partition(b"ref: ")
            value = start if not name else _value(os.fsencode(repository), name)
            found = _COMMIT.fullmatch(value)
            return None if found is None else found[1].decode()
    return None


def packed_as(path: bytes) -> str | None:
    """Of the path of a name of a repository's: the sha256 that its file would have if it was not packed. None when
    it is not packed."""
    parts = path.split(_NAMES)
    for number in range(1, len(parts)):
        repository, name = _NAMES.join(parts[:number]), b"refs/" + _NAMES.join(parts[number:])
        if oid := _packed(repository, name):
            return hashlib.sha256(oid + b"\n").hexdigest()
    return None


def _value(repository: bytes, name: bytes) -> bytes:
    return read_file(repository + b"/" + name, _SMALL) or _packed(repository, name)


def _packed(repository: bytes, name: bytes) -> bytes:
    """Empty when it is not among the packed names."""
    listed = (read_file(repository + b"/packed-refs") or b"").splitlines()
    return next((oid for oid, _, ref in (line.partition(b" ") for line in listed) if ref == name), b"")
