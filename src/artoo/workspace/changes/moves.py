"""Finds moved files: a deleted file whose content is at a new path loses nothing but its place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node
from artoo.workspace.changes.base import Base


def moves(changes: Sequence[Change], bases: Mapping[str, Base]) -> dict[str, str]:
    """Return where the contents of deleted files and directories are now, by printable path.

    Only a new path counts: where something was overwritten, a file is lost. A directory is moved when everything in
    it is, and there was something in it. An empty file is moved only to one of the same name, because it equals
    every empty file.
    """
    if not any(change.kind is ChangeKind.DELETED for change in changes):
        return {}
    arrived: dict[str, list[str]] = {}
    for change in changes:
        if change.content_sha256 is not None and change.kind is ChangeKind.CREATED:
            arrived.setdefault(change.content_sha256, []).append(change.path)
    gone: dict[str, list[Change]] = {}
    for change in changes:
        base = bases.get(change.path)
        was = base.sha256 if base is not None and change.before is Node.FILE else None
        if change.kind is ChangeKind.DELETED and was is not None and was in arrived:
            gone.setdefault(was, []).append(change)
    found: dict[str, str] = {}
    for content, files in gone.items():
        found |= _paired(files, arrived[content])
    return found | _moved_directories(changes, found)


def _paired(gone: Sequence[Change], arrived: Sequence[str]) -> dict[str, str]:
    """Pair files of one content: a new path of the same name first, else one of its own while there are any.

    Copies that were brought together share the last one.
    """
    by_name: dict[str, list[str]] = {}
    for path in arrived:
        by_name.setdefault(_name(path), []).append(path)
    found = {one.path: named.pop(0) for one in gone if (named := by_name.get(_name(one.path)))}
    taken = set(found.values())
    free = (path for path in arrived if path not in taken)
    others = (one for one in gone if one.path not in found and one.size_before)
    return found | {one.path: next(free, arrived[0]) for one in others}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _moved_directories(changes: Sequence[Change], moved: Mapping[str, str]) -> dict[str, str]:
    gone = [one for one in changes if one.kind is ChangeKind.DELETED]
    emptied: dict[str, str] = {}
    lossy: set[str] = set()
    for file in (one for one in gone if one.before is not Node.DIRECTORY):
        target = moved.get(file.path)
        for above in map(str, Path(file.path).parents):
            if target is None:
                lossy.add(above)
            else:
                emptied.setdefault(above, os.path.dirname(target))
    directories = (one.path for one in gone if one.before is Node.DIRECTORY)
    return {path: emptied[path] for path in directories if path in emptied and path not in lossy}
