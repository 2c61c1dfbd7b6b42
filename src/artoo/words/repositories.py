"""Describe changed files in `.git` for results; a review's words are in `workspace/git/meaning.py`.

This module uses only the path of a file. Losses of commits are found by git itself (`workspace.git`), and are in
the change's class and reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artoo.contracts.changes import ChangeKind
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.words.catalogue import in_language

_MARK = "/.git/"
_OBJECT = re.compile(r"objects/(?:[0-9a-f]{2}(?:/[0-9a-f]{38,62})?|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev))")
_TOLD_TOGETHER = (ChangeClass.SILENT, ChangeClass.ELSEWHERE, ChangeClass.MODE)
_NAMES = (
    ("refs/heads/", "branch {name}"),
    ("refs/tags/", "tag {name}"),
    ("refs/remotes/", "remote branch {name}"),
    ("refs/notes/", "notes {name}"),
)
_FILES = {"HEAD": "the checked-out branch", "refs/stash": "the stash", "index": "the staged files"}


@dataclass(frozen=True, slots=True)
class Inside:
    """A path in a repository, split into the repository's directory and the path below its `.git`."""

    repository: str
    inner: str

    @classmethod
    def of(cls, path: str) -> Inside | None:
        """Split a path. Returns None if the path is not below a `.git`."""
        repository, found, inner = path.partition(_MARK)
        return cls(repository, inner) if found else None


def meaning(change: ClassifiedChange, language: str) -> str:
    """Return the meaning of a file, such as `branch main`, or an empty text if it has none."""
    inside = Inside.of(change.path)
    is_directory = change.size_before is None and change.size_after is None
    if inside is None or is_directory:
        return ""
    inner, text = inside.inner, in_language(language)
    for place, named in _NAMES:
        if inner.startswith(place):
            return text(named, name=inner.removeprefix(place))
    if inner.startswith("logs/"):
        return text("the reflog of {name}", name=inner.removeprefix("logs/").removeprefix("refs/heads/"))
    return text(_FILES[inner]) if inner in _FILES else ""


def names_first(changes: Iterable[ClassifiedChange]) -> list[ClassifiedChange]:
    """Sort branches and tags before git's other files, because users know them."""
    return sorted(changes, key=lambda one: f"{_MARK}refs/" not in one.path)


def is_object(change: ClassifiedChange) -> bool:
    """Check whether a change is a new git object or its new timestamp. No program executes these files.

    An object that git rejects has another class, so it does not count.
    """
    inside = Inside.of(change.path)
    if inside is None or change.change_class not in _TOLD_TOGETHER or _OBJECT.fullmatch(inside.inner) is None:
        return False
    return change.kind is ChangeKind.CREATED or (change.kind is ChangeKind.METADATA and change.detail == "time")


Group = tuple[str, ChangeClass]
"""The repository's directory, and the class of the changes that share a line."""


def group_of(change: ClassifiedChange) -> Group:
    """Return the group of a path in a repository."""
    return change.path.partition(_MARK)[0], change.change_class


def objects_of(changes: Iterable[ClassifiedChange]) -> dict[Group, list[ClassifiedChange]]:
    """Group git's objects by repository and class."""
    found: dict[Group, list[ClassifiedChange]] = {}
    for change in filter(is_object, changes):
        found.setdefault(group_of(change), []).append(change)
    return found


def apart(
    changes: Iterable[ClassifiedChange],
) -> tuple[list[ClassifiedChange], dict[Group, list[ClassifiedChange]]]:
    """Return the changes that need a line of their own, and by group the changes that share a line.

    Harmless changes in repositories and git objects share a line. Other changes that need approval never do.
    """
    others: list[ClassifiedChange] = []
    inside: dict[Group, list[ClassifiedChange]] = {}
    for change in changes:
        # Apart from objects, only harmless changes share a line. Changes that need approval are named one by one.
        silent = change.change_class is ChangeClass.SILENT and Inside.of(change.path) is not None
        if silent or is_object(change):
            inside.setdefault(group_of(change), []).append(change)
        else:
            others.append(change)
    return others, inside


def told(changes: Sequence[ClassifiedChange], language: str) -> str:
    """Describe the changes of one repository, such as `branch work (new), the staged files, 3 new objects`."""
    parts, text = list[str](), in_language(language)
    objects = touched = 0
    for change in changes:
        inner = change.path.partition(_MARK)[2]
        if inner.startswith("objects/"):
            objects += change.kind is ChangeKind.CREATED and change.size_after is not None
            touched += change.change_class is ChangeClass.MODE
        # A reflog is left out, because its branch is named already.
        elif not inner.startswith("logs/") and (named := meaning(change, language)):
            new = change.kind is ChangeKind.CREATED and inner.startswith("refs/")
            parts.append(text("{name} (new)", name=named) if new else named)
    if objects:
        parts.append(text("{count} new objects (commits and files)", count=f"{objects:,}"))
    if touched:
        parts.append(text("times of objects: {count}", count=f"{touched:,}"))
    return text(", ").join(parts) or text("git's own files")
