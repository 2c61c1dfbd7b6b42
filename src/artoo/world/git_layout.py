"""What lies where in a git repository (gitrepository-layout(5)), and what a change there can cost.

state    where commits, names of commits and the record of their moves are kept: `git_history` judges it
programs settings and hooks: from there git starts programs, or is led to other settings
scratch  what git writes for itself and makes again
"""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from pathlib import Path

from artoo.ports.world import Files


class Part(StrEnum):
    """Of what use a path in a repository is. `unknown`: not in the layout that git documents."""

    STATE = "state"
    PROGRAMS = "programs"
    SCRATCH = "scratch"
    INDEX = "index"
    UNKNOWN = "unknown"


_PARTS: tuple[tuple[Part, str], ...] = (
    (Part.PROGRAMS, r"hooks(/.*)?|config|config\.worktree|info/attributes|commondir|gitdir"),
    (Part.STATE, r"HEAD|packed-refs|shallow|refs(/.*)?|logs(/.*)?|reftable(/.*)?|objects(/.*)?|info/grafts"),
    (Part.INDEX, r"index"),
    (
        Part.SCRATCH,
        r"[A-Z][A-Z_]*|[A-Z_]+_EDITMSG|[\w./-]+\.lock|sharedindex\.[0-9a-f]+|gitk\.cache|gc\.(log|pid)|description"
        r"|info(/exclude|/refs|/sparse-checkout)?|branches|rr-cache(/.*)?|rebase-(merge|apply)(/.*)?|sequencer(/.*)?"
        r"|fsmonitor--daemon(/.*|\.ipc)?|worktrees|modules",
    ),
)
_TABLE = tuple((part, re.compile(pattern)) for part, pattern in _PARTS)
_WORKTREE = re.compile(r"worktrees/[^/]+/?")

_SECTION = re.compile(rb'\[\s*([A-Za-z]+)(?:\s+"[^"\n]*")?\s*\]')
_SAFE_SETTINGS = {
    b"core": frozenset(
        b"repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks".split()
    ),
    b"remote": frozenset(b"url fetch tagopt".split()),
    b"branch": frozenset(b"remote merge rebase".split()),
    b"extensions": frozenset(b"objectformat refstorage".split()),
    b"user": frozenset(b"name email".split()),
}
_SAFE_URL = re.compile(rb"(https?://|ssh://|git://|file://|/|\./|\.\./|[\w.-]+@[\w.-]+:)[^\n]*")


def part_of(inner: str) -> Part:
    """What the path below a repository's directory is. Of a linked worktree the same names mean the same."""
    within = _WORKTREE.sub("", inner, count=1) if inner.startswith("worktrees/") else inner
    if not within:
        return Part.SCRATCH
    return next((part for part, pattern in _TABLE if pattern.fullmatch(within)), Part.UNKNOWN)


def is_bookkeeping(path: bytes) -> bool:
    """Whether a path is one of those in which git keeps its own notes: for records of single commands, which tell
    what was meant. What a difference loses is judged by `git_history`."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and part_of(inner) in (Part.STATE, Part.INDEX, Part.SCRATCH)


def repository_of(path: Path, *looks: Files) -> Path | None:
    """The directory of the innermost repository that holds `path`, as any of the looks sees it.

    A repository is what git takes for one: a directory with HEAD, objects and refs, however it is called.
    """
    for above in (path, *path.parents):
        if any(_is_repository(above, files) for files in looks):
            return above
    return None


def _is_repository(directory: Path, files: Files) -> bool:
    places = [files.at(directory / name) for name in ("HEAD", "objects", "refs")]
    if any(place is None for place in places):
        return False
    _, objects, refs = places
    return objects is not None and refs is not None and objects.is_dir() and refs.is_dir()


def plain_settings(text: bytes) -> bool:
    """Whether a configuration holds only settings that name no program."""
    section = b""
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith((b"#", b";")):
            continue
        header = _SECTION.fullmatch(line)
        if header:
            section = header.group(1).lower()
            continue
        name, _, value = line.partition(b"=")
        name, value = name.strip().lower(), value.strip()
        if name not in _SAFE_SETTINGS.get(section, frozenset()) or value.endswith(b"\\"):
            return False
        if name == b"url" and not _SAFE_URL.fullmatch(value):
            return False
    return True


def is_index(content: bytes) -> bool:
    """Whether git could have written this index: whole by its own checksum, which zeros leave out (skipHash)."""
    body = content[:-20]
    ends = (hashlib.sha1(body, usedforsecurity=False).digest(), bytes(20))
    if body.startswith(b"DIRC") and content[-20:] in ends:
        return True
    return content.startswith(b"DIRC") and content[-32:] in (hashlib.sha256(content[:-32]).digest(), bytes(32))


def read_file(place: bytes | Path, length: int = 64 << 20) -> bytes | None:
    """A regular file; None when it cannot be read or is longer."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(length + 1)
    return content if len(content) <= length else None
