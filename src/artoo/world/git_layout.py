"""What lies where in a git repository, and what a change there can cost: the table of docs/design/git-layout.md.

state     where commits, names of commits and the record of their moves are kept: `git_history` judges it
index     what is staged: `git_staged` judges it
programs  settings and hooks: from there git starts programs, or is led to other settings, remotes, ignored files
operation a merge, rebase or the like that is under way: git goes on with it, and a rebase runs what it says
lock      while it is there git refuses to work
scratch   what git writes for itself and makes again
nested    repositories of submodules, each judged by itself; what lies beside them is judged like any other file
text      for people: judged like any other file
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.ports.world import Files


class Part(StrEnum):
    """Of what use a path in a repository is. `unknown`: not in the layout that git documents."""

    STATE = "state"
    INDEX = "index"
    PROGRAMS = "programs"
    OPERATION = "operation"
    LOCK = "lock"
    SCRATCH = "scratch"
    NESTED = "nested"
    TEXT = "text"
    UNKNOWN = "unknown"


_REMADE = (
    r"ORIG_HEAD|FETCH_HEAD|AUTO_MERGE|gc\.log|gitk\.cache|info(/refs)?|branches|fsmonitor--daemon(/.*)?|worktrees"
)
"""Scratch that git itself removes, or makes again without anybody's words in it; drafts of messages are not."""

_PARTS: tuple[tuple[Part, str], ...] = (
    (Part.LOCK, r"(.*/)?[^/]+\.lock|gc\.pid"),
    (
        Part.PROGRAMS,
        r"hooks(/.*)?|config|config\.worktree|commondir|gitdir|remotes(/.*)?|branches/.+|rr-cache(/.*)?"
        r"|info/(attributes|exclude|sparse-checkout)"
        r"|modules/(.*/)?(hooks(/.*)?|config|config\.worktree|commondir|gitdir|info/attributes)",
    ),
    (Part.STATE, r"HEAD|packed-refs|shallow|refs(/.*)?|logs(/.*)?|reftable(/.*)?|objects(/.*)?|info/grafts"),
    (Part.INDEX, r"index|sharedindex\.[0-9a-f]+"),
    (
        Part.OPERATION,
        r"MERGE_(HEAD|MSG|MODE|RR|AUTOSTASH)|SQUASH_MSG|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD|BISECT_[A-Z_]+"
        r"|NOTES_MERGE_[A-Z]+(/.*)?|rebase-(merge|apply)(/.*)?|sequencer(/.*)?",
    ),
    (
        Part.SCRATCH,
        r"(COMMIT|TAG|NOTES)_EDITMSG|EDIT_DESCRIPTION|ADD_EDIT\.patch|addp-hunk-edit\.diff|" + _REMADE,
    ),
    (Part.NESTED, r"modules(/.*)?"),
    (Part.TEXT, r"description|lost-found(/.*)?"),
)
_TABLE = tuple((part, re.compile(pattern)) for part, pattern in _PARTS)
_DIRECTORIES = re.compile(
    r"(hooks|refs|logs|reftable|objects|remotes|rr-cache|rebase-(merge|apply)|sequencer|lost-found|modules"
    r"|fsmonitor--daemon|NOTES_MERGE_WORKTREE)(/.*)?|info|branches|worktrees"
)
_EMPTIED = re.compile(r"objects/[0-9a-f]{2}|refs/[^/]+/.+")
_HEAD = re.compile(rb"(ref:\s*refs/\S+|[0-9a-f]{40}|[0-9a-f]{64})\s*")
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
    within = without_worktree(inner)
    if not within:
        return Part.SCRATCH
    return next((part for part, pattern in _TABLE if pattern.fullmatch(within)), Part.UNKNOWN)


def without_worktree(inner: str) -> str:
    """The path below the directory of a linked worktree, if it is in one."""
    return _WORKTREE.sub("", inner, count=1) if inner.startswith("worktrees/") else inner


def is_remade(inner: str) -> bool:
    """Whether nothing of a person's is lost with a path of a repository that is scratch."""
    own = without_worktree(inner)
    return not own or re.fullmatch(_REMADE, own) is not None


def is_gits_node(inner: str, node: Node) -> bool:
    """Whether git makes things of this kind there: files, and directories where it has some."""
    if node is Node.DIRECTORY:
        within = without_worktree(inner)
        return not within or _DIRECTORIES.fullmatch(within) is not None
    return node is Node.FILE


def is_bookkeeping(path: bytes) -> bool:
    """Whether a path is one of those in which git keeps its own notes: for records of single commands, which tell
    what was meant, and for links. What a difference loses is judged by `git_history`."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and part_of(inner) not in (Part.PROGRAMS, Part.UNKNOWN, Part.TEXT)


def is_scratch(path: bytes) -> bool:
    """Whether git makes a file again whenever it needs it, so that of two versions either will do."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and part_of(inner) is Part.SCRATCH


def is_emptied(path: bytes) -> bool:
    """Whether git removes such a directory when nothing is in it any more, and makes it again."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and _EMPTIED.fullmatch(inner) is not None


def repository_of(path: Path, before: Files, after: Files, *, known: dict[Path, bool] | None = None) -> Path | None:
    """The directory of the innermost repository that holds `path`, as either look sees it.

    What is made to look like one inside of git's own files of a repository that is there does not take them out of
    it. `known`: what earlier calls with these looks found of directories, for many paths.
    """
    known = {} if known is None else known
    for above in (path, *path.parents):
        if not _may_be(above, before, after, known):
            continue
        for outer in above.parents:
            own = part_of(str(above.relative_to(outer))) not in (Part.UNKNOWN, Part.NESTED)
            if own and _may_be(outer, before, after, known) and is_repository(outer, before):
                return outer
        linked = above.parent.parent if above.parent.name == "worktrees" else None
        return linked if linked is not None and _may_be(linked, before, after, known) else above
    return None


@dataclass(slots=True)
class Holders:
    """Which repository holds a path, for many paths of the same two looks: it is looked for once a directory."""

    before: Files
    after: Files
    _found: dict[bytes, Path | None] = field(default_factory=dict[bytes, Path | None])
    _known: dict[Path, bool] = field(default_factory=dict[Path, bool])

    def of(self, path: bytes, *, is_directory: bool) -> Path | None:
        """The directory of the innermost repository; a directory may be one itself."""
        directory = path if is_directory else path.rpartition(b"/")[0] or b"/"
        if directory not in self._found:
            place = Path(os.fsdecode(directory))
            self._found[directory] = repository_of(place, self.before, self.after, known=self._known)
        return self._found[directory]


def inner_path(path: bytes, repository: Path) -> str:
    """Where a path lies in a repository; empty for its directory."""
    place = Path(os.fsdecode(path))
    return "" if place == repository else str(place.relative_to(repository))


def _may_be(directory: Path, before: Files, after: Files, known: dict[Path, bool]) -> bool:
    """Whether git may take it for a repository: it has a head, and objects or the name of where they are; however
    it is called, and whether or not it is whole."""
    if directory not in known:
        known[directory] = any(
            _is_head(files.at(directory / "HEAD"))
            and any(files.at(directory / name) is not None for name in ("objects", "commondir"))
            for files in (before, after)
        )
    return known[directory]


def _is_head(place: Path | None) -> bool:
    """Whether it may say where a repository stands. Of what is no file that can be read, nothing else is known."""
    if place is None:
        return False
    content = read_file(place, 4096)
    return content is None or _HEAD.fullmatch(content) is not None


def is_repository(directory: Path, files: Files) -> bool:
    """Whether git takes a directory for a repository: a head that says where it stands, objects and names."""
    places = [files.at(directory / name) for name in ("objects", "refs")]
    return _is_head(files.at(directory / "HEAD")) and all(place is not None and place.is_dir() for place in places)


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


def is_packed_refs(content: bytes | None) -> bool:
    """Whether packed names stand in order: where they say so, git searches without looking at all of them."""
    if content is None:
        return False
    names = [line.partition(b" ")[2] for line in content.splitlines() if line and line[:1] not in (b"#", b"^")]
    return names == sorted(names)


def read_file(place: bytes | Path, length: int = 64 << 20) -> bytes | None:
    """A regular file; None when it cannot be read or is longer."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(length + 1)
    return content if len(content) <= length else None
