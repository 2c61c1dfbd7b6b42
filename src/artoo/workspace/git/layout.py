"""Classify files in `.git` (refs, index, hooks, settings), and find the repository of a path.

The content of a repository is read by git itself. This module only decides by their names which files are git's
own. It includes too much rather than too little: a directory with HEAD, objects and refs counts as a repository
even if its HEAD is invalid.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from artoo.contracts.changes import Node
from artoo.workspace.changes.effect import Effect


class PathPurpose(StrEnum):
    """The purpose of a path in a repository.

    `state`: commits, refs, reflogs. `programs`: settings and hooks, by which git starts programs. `operation`: an
    unfinished merge, rebase or similar. `scratch`: temporary files that git makes again when it needs them.
    `nested`: repositories of submodules. `text`: files for people. `unknown`: paths that are not in the layout that
    git documents.
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
        (PathPurpose.LOCK, r"(.*/)?[^/]+\.lock|gc\.pid"),
        (
            PathPurpose.PROGRAMS,
            r"hooks(/.*)?|config|config\.worktree|commondir|gitdir|remotes(/.*)?|branches/.+|rr-cache(/.*)?"
            r"|info/(attributes|exclude|sparse-checkout|grafts)|shallow"
            r"|modules/(.*/)?(hooks(/.*)?|config|config\.worktree|commondir|gitdir|info/attributes)",
        ),
        (PathPurpose.STATE, r"HEAD|packed-refs|refs(/.*)?|logs(/.*)?|reftable(/.*)?|objects(/.*)?"),
        (PathPurpose.INDEX, r"index|sharedindex\.[0-9a-f]+"),
        (
            PathPurpose.OPERATION,
            r"MERGE_(HEAD|MSG|MODE|RR|AUTOSTASH)|SQUASH_MSG|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD|BISECT_[A-Z_]+"
            r"|NOTES_MERGE_[A-Z]+(/.*)?|rebase-(merge|apply)(/.*)?|sequencer(/.*)?",
        ),
        (
            PathPurpose.SCRATCH,
            r"(COMMIT|TAG|NOTES)_EDITMSG|EDIT_DESCRIPTION|ADD_EDIT\.patch|addp-hunk-edit\.diff|ORIG_HEAD|FETCH_HEAD"
            r"|AUTO_MERGE|gc\.log|gitk\.cache|info(/refs)?|branches|fsmonitor--daemon(/.*)?|worktrees",
        ),
        (PathPurpose.NESTED, r"modules(/.*)?"),
        (PathPurpose.TEXT, r"description|lost-found(/.*)?"),
    )
)
_WORKTREE = re.compile(r"worktrees/[^/]+/?")
_UNDER_WAY = re.compile(
    r"(MERGE_HEAD|MERGE_AUTOSTASH|CHERRY_PICK_HEAD|REVERT_HEAD|BISECT_(LOG|START)|rebase-(merge|apply)|sequencer"
    r"|NOTES_MERGE_[A-Z]+)(/.*)?"
)
"""The files that mark an unfinished operation. Other files of the operation, such as its message, prove nothing by
themselves."""

_READ = frozenset({PathPurpose.STATE, PathPurpose.INDEX, PathPurpose.PROGRAMS, PathPurpose.OPERATION})
"""The parts that git reads when it reports the state of a repository."""

_SPECIAL = frozenset({Node.FIFO, Node.SOCKET, Node.DEVICE, Node.LINK})
_REF = re.compile(rb"refs/(?!.*\.\.).*", re.DOTALL)
_TAKEN = frozenset({PathPurpose.STATE, PathPurpose.INDEX, PathPurpose.LOCK, PathPurpose.SCRATCH})


def part_of(inner: str) -> PathPurpose:
    """Return the part of a path below a repository's directory. In a linked worktree the same names apply."""
    within = _WORKTREE.sub("", inner, count=1) if inner.startswith("worktrees/") else inner
    if not within:
        return PathPurpose.SCRATCH
    return next((part for part, pattern in _TABLE if pattern.fullmatch(within)), PathPurpose.UNKNOWN)


def is_bookkeeping(path: bytes) -> bool:
    """True for a file that git maintains by itself. Settings, hooks, texts and unknown files are not such files."""
    _, found, inner = os.fsdecode(path).partition("/.git/")
    return bool(found) and part_of(inner) not in (PathPurpose.PROGRAMS, PathPurpose.UNKNOWN, PathPurpose.TEXT)


def is_taken(inner: str, effect: Effect) -> bool:
    """True for an effect that git itself transfers or recreates. It is never applied as a file change."""
    part, after = part_of(inner), effect.after
    if part is PathPurpose.OPERATION:
        return after is not None
    if part in _TAKEN or (effect.in_place and part is not PathPurpose.UNKNOWN):
        return True
    if after is None or effect.before is not None:
        return False
    sample = inner.startswith("hooks/") and inner.endswith(".sample") and after.node is Node.FILE
    return sample or (after.is_directory and (inner == "hooks" or part is PathPurpose.NESTED))


def under_way(inner: str) -> bool:
    """True for a file that marks an unfinished operation."""
    return _UNDER_WAY.fullmatch(inner) is not None


class Kind(StrEnum):
    """The way in which a repository as a whole changes.

    `suspect`: the directory existed before, but git would only now treat it as a repository.
    """

    CHANGED = "changed"
    CREATED = "created"
    DELETED = "deleted"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository that a task changes. `effects`: the effects in it, by their paths relative to its
    directory."""

    directory: bytes
    kind: Kind
    effects: Mapping[str, Effect]

    @property
    def is_worktree(self) -> bool:
        """True for the part of a repository that belongs to one linked worktree."""
        return self.directory.split(b"/")[-2] == b"worktrees"


def holds_git_up(repository: Repository) -> bool:
    """True if git could block on a file: the task replaced a file that git reads by a pipe, a socket, a device or a
    link.

    A hook may be a link, because git does not read hooks here. A ref may be a link, because git reads its target as
    text.
    """
    return any(
        part_of(inner) in _READ
        and one.after is not None
        and one.after.node in _SPECIAL
        and not (one.after.node is Node.LINK and (inner.startswith("hooks/") or _REF.fullmatch(one.after.target)))
        for inner, one in repository.effects.items()
    )


def repositories(effects: Sequence[Effect]) -> tuple[Repository, ...]:
    """Return the repositories whose own files are among the effects, outer ones first."""
    looks = _Looks({one.path: one for one in effects})
    holders: dict[bytes, bytes | None] = {}
    found: dict[bytes, dict[str, Effect]] = {}
    for effect in effects:
        is_directory = any(state is not None and state.is_directory for state in (effect.before, effect.after))
        place = effect.path if is_directory else effect.path.rpartition(b"/")[0]
        if place not in holders:
            holders[place] = looks.holder(place)
        if (holder := holders[place]) is not None:
            inner = os.fsdecode(effect.path[len(holder) :].lstrip(b"/"))
            found.setdefault(holder, {})[inner] = effect
    made = ((holder, looks.kind(holder), inside) for holder, inside in sorted(found.items()))
    every = (Repository(holder, kind, _owned(holder, kind, inside)) for holder, kind, inside in made)
    return tuple(one for one in every if one.effects)


def _owned(holder: bytes, kind: Kind, inside: dict[str, Effect]) -> dict[str, Effect]:
    """Return the effects on git's own files. In a bare repository, other files may be next to them."""
    if os.path.basename(holder) == b".git":
        return inside
    others = (PathPurpose.UNKNOWN,) if kind is Kind.CREATED else (PathPurpose.UNKNOWN, PathPurpose.TEXT)
    return {inner: effect for inner, effect in inside.items() if part_of(inner) not in others}


def _above(path: bytes) -> list[bytes]:
    names = path.split(b"/")
    return [b"/".join(names[:length]) for length in range(2, len(names))]


@dataclass(slots=True)
class _Looks:
    """Looks up whether paths exist in the user's version and in the task's version."""

    effects: Mapping[bytes, Effect]
    known: dict[tuple[bytes, bool], bool] = field(default_factory=dict[tuple[bytes, bool], bool])

    def there(self, path: bytes, *, after: bool) -> bool:
        """True if the path exists in the user's version, or, with `after`, in the task's version."""
        one = self.effects.get(path) if after else None
        if one is not None:
            return one.after is not None
        if after and any(self._is_other(above) for above in _above(path)):
            return False
        return os.path.lexists(path)

    def _is_other(self, directory: bytes) -> bool:
        """True if the directory is missing in one of the versions, so that none of the user's paths is visible in
        it."""
        one = self.effects.get(directory)
        return one is not None and not all(state and state.is_directory for state in (one.before, one.after))

    def is_repository(self, directory: bytes, *, after: bool) -> bool:
        """True if git may treat the directory as a repository, or as the part of a repository that belongs to a
        linked worktree."""
        key = (directory, after)
        if key not in self.known:
            head, objects, refs, common = (
                self.there(directory + name, after=after)
                for name in (b"/HEAD", b"/objects", b"/refs", b"/commondir")
            )
            self.known[key] = head and ((objects and refs) or common)
        return self.known[key]

    def holder(self, path: bytes) -> bytes | None:
        """Return the repository that contains a path. The search begins with the outermost directory, so that a
        fake repository among git's own files is ignored."""
        holder: bytes | None = None
        for above in (*_above(path), path):
            if holder is not None:
                inner = os.fsdecode(above[len(holder) + 1 :])
                own = part_of(inner) is not PathPurpose.NESTED and not _WORKTREE.fullmatch(inner)
                if own and (part_of(inner) is not PathPurpose.UNKNOWN or os.path.basename(holder) == b".git"):
                    continue
            if self.is_repository(above, after=False) or self.is_repository(above, after=True):
                holder = above
        return holder

    def kind(self, directory: bytes) -> Kind:
        if self.is_repository(directory, after=False):
            return Kind.CHANGED if self.is_repository(directory, after=True) else Kind.DELETED
        waiting = (b"/config", b"/hooks", b"/refs", b"/objects", b"/HEAD", b"/commondir")
        strange = os.path.basename(directory) != b".git" and any(
            os.path.dirname(path) == directory
            and part_of(os.path.basename(os.fsdecode(path))) is PathPurpose.UNKNOWN
            for path in self.effects
        )
        there = any(self.there(directory + name, after=False) for name in waiting)
        return Kind.SUSPECT if there or strange else Kind.CREATED
