"""What lies where in a git repository, and to which repository a path belongs.

Git itself is asked what a repository holds. Here is decided only which files are git's own, by what they are called,
and generously: a directory with HEAD, objects and refs counts as a repository whatever its HEAD says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from artoo.workspace.changes.effect import Effect


class Part(StrEnum):
    """What a path in a repository is for.

    `state`: commits, refs, reflogs. `programs`: settings and hooks; from there git starts programs. `operation`: a
    merge, rebase or the like that is under way. `scratch`: what git writes for itself and makes again. `nested`:
    repositories of submodules. `text`: for people. `unknown`: not in the layout that git documents.
    """

    STATE = "state"
    INDEX = "index"
    PROGRAMS = "programs"
    OPERATION = "operation"
    LOCK = "lock"
    SCRATCH = "scratch"
    NESTED = "nested"
    TEXT = "text"
    UNKNOWN = "unknown"


_TABLE = tuple(
    (part, re.compile(pattern))
    for part, pattern in (
        (Part.LOCK, r"(.*/)?[^/]+\.lock|gc\.pid"),
        (
            Part.PROGRAMS,
            r"hooks(/.*)?|config|config\.worktree|commondir|gitdir|remotes(/.*)?|branches/.+|rr-cache(/.*)?"
            r"|info/(attributes|exclude|sparse-checkout|grafts)|shallow"
            r"|modules/(.*/)?(hooks(/.*)?|config|config\.worktree|commondir|gitdir|info/attributes)",
        ),
        (Part.STATE, r"HEAD|packed-refs|refs(/.*)?|logs(/.*)?|reftable(/.*)?|objects(/.*)?"),
        (Part.INDEX, r"index|sharedindex\.[0-9a-f]+"),
        (
            Part.OPERATION,
            r"MERGE_(HEAD|MSG|MODE|RR|AUTOSTASH)|SQUASH_MSG|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD|BISECT_[A-Z_]+"
            r"|NOTES_MERGE_[A-Z]+(/.*)?|rebase-(merge|apply)(/.*)?|sequencer(/.*)?",
        ),
        (
            Part.SCRATCH,
            r"(COMMIT|TAG|NOTES)_EDITMSG|EDIT_DESCRIPTION|ADD_EDIT\.patch|addp-hunk-edit\.diff|ORIG_HEAD|FETCH_HEAD"
            r"|AUTO_MERGE|gc\.log|gitk\.cache|info(/refs)?|branches|fsmonitor--daemon(/.*)?|worktrees",
        ),
        (Part.NESTED, r"modules(/.*)?"),
        (Part.TEXT, r"description|lost-found(/.*)?"),
    )
)
_WORKTREE = re.compile(r"worktrees/[^/]+/?")


def part_of(inner: str) -> Part:
    """Return what the path below a repository's directory is for. In a linked worktree the same names count."""
    within = _WORKTREE.sub("", inner, count=1) if inner.startswith("worktrees/") else inner
    if not within:
        return Part.SCRATCH
    return next((part for part, pattern in _TABLE if pattern.fullmatch(within)), Part.UNKNOWN)


def is_bookkeeping(path: bytes) -> bool:
    """True for a path where git keeps its own notes: no settings, no hooks, nothing for people."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and part_of(inner) not in (Part.PROGRAMS, Part.UNKNOWN, Part.TEXT)


class Kind(StrEnum):
    """What a task did to a repository as a whole.

    `suspect`: the directory was there, and only now git would take it for a repository.
    """

    CHANGED = "changed"
    CREATED = "created"
    DELETED = "deleted"
    SUSPECT = "suspect"


Exists = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository that a task changes: its directory, and the effects in it by their path below it."""

    directory: bytes
    kind: Kind
    effects: Mapping[str, Effect]

    @property
    def is_worktree(self) -> bool:
        """True for the part of a repository that belongs to one linked worktree."""
        return os.path.basename(os.path.dirname(self.directory)) == b"worktrees" and self.directory.count(b"/") > 2


@dataclass(slots=True)
class Looks:
    """The user's files and the task's, asked for existence only."""

    effects: Mapping[bytes, Effect]
    _known: dict[tuple[bytes, bool], bool] = field(default_factory=dict[tuple[bytes, bool], bool])

    @classmethod
    def of(cls, effects: Iterable[Effect]) -> Looks:
        return cls({one.path: one for one in effects})

    def before(self, path: bytes) -> bool:
        """True if the user has something at the path."""
        return os.path.lexists(path)

    def after(self, path: bytes) -> bool:
        """True if the task has something at the path."""
        if path in self.effects:
            return self.effects[path].after is not None
        above = path
        while len(above) > 1:
            above = os.path.dirname(above)
            if (one := self.effects.get(above)) is not None:
                fresh = one.before is None or not one.before.is_directory
                if fresh or one.after is None or not one.after.is_directory or one.replaced_directory:
                    return False
        return os.path.lexists(path)

    def is_repository(self, directory: bytes, *, after: bool) -> bool:
        """True if git may take the directory for a repository, or the part of a linked worktree."""
        key = (directory, after)
        if key not in self._known:
            exists = self.after if after else self.before
            whole = exists(directory + b"/objects") and exists(directory + b"/refs")
            self._known[key] = exists(directory + b"/HEAD") and (whole or exists(directory + b"/commondir"))
        return self._known[key]


def repositories(effects: Sequence[Effect]) -> tuple[Repository, ...]:
    """Return the repositories to whose own files the effects belong, outer ones first."""
    looks = Looks.of(effects)
    holders: dict[bytes, bytes | None] = {}
    found: dict[bytes, dict[str, Effect]] = {}
    for effect in effects:
        directory = os.path.dirname(effect.path)
        if directory not in holders:
            holders[directory] = _holder(directory, looks)
        holder = _holder(effect.path, looks) if _is_directory(effect) else holders[directory]
        if holder is not None:
            inner = os.fsdecode(effect.path[len(holder) :].lstrip(b"/"))
            if os.path.basename(holder) == b".git" or part_of(inner) not in (Part.UNKNOWN, Part.TEXT):
                found.setdefault(holder, {})[inner] = effect
    return tuple(Repository(one, _kind(one, looks), inside) for one, inside in sorted(found.items()))


def _is_directory(effect: Effect) -> bool:
    return any(state is not None and state.is_directory for state in (effect.before, effect.after))


def _holder(path: bytes, looks: Looks) -> bytes | None:
    """Return the repository that holds a path: from the outside in, so that a fake in git's own files is none."""
    names, holder = path.split(b"/"), None
    for length in range(2, len(names) + 1):
        above = b"/".join(names[:length])
        if holder is not None:
            inner = os.fsdecode(above[len(holder) + 1 :])
            nested = part_of(inner) in (Part.NESTED, Part.UNKNOWN) or _WORKTREE.fullmatch(inner)
            if not nested or (os.path.basename(holder) == b".git" and part_of(inner) is Part.UNKNOWN):
                continue
        if looks.is_repository(above, after=False) or looks.is_repository(above, after=True):
            holder = above
    return holder


def _kind(directory: bytes, looks: Looks) -> Kind:
    if looks.is_repository(directory, after=False):
        return Kind.CHANGED if looks.is_repository(directory, after=True) else Kind.DELETED
    waiting = any(
        looks.before(directory + b"/" + name) for name in (b"config", b"hooks", b"refs", b"objects", b"HEAD")
    )
    return Kind.SUSPECT if waiting or looks.before(directory + b"/commondir") else Kind.CREATED
