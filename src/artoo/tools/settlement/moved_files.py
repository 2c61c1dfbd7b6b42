"""Find deleted files whose content is at a new path: for a reader a move is no loss."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node, path_bytes
from artoo.ports.workspace import Files
from artoo.tools.files.paths import entry_path
from artoo.tools.files.text_files import NotPlainFile, read_limited

_COMPARED_BYTES = 256 * 1024
"""A file is compared up to here; a larger one is shown as deleted and created."""
_MOST_COMPARED = 500
"""Deleted files that are compared, and new files of its size that one is compared with."""


def moved_files(changes: Iterable[Change], before: Files, now: Files) -> dict[str, str]:
    """Return where each deleted file is now: the path of a new file with its content, each named once. Blocking.

    A sensitive path is shown as deleted and created. An empty file is moved only to one of its own name, because it
    equals every empty file.
    """
    gone: list[Change] = []
    made: dict[int, list[Change]] = defaultdict(list)
    for change in (one for one in changes if not one.sensitive):
        if change.kind is ChangeKind.DELETED and change.before is Node.FILE:
            gone.append(change)
        elif change.kind is ChangeKind.CREATED and change.node is Node.FILE and change.size_after is not None:
            made[change.size_after].append(change)
    found: dict[str, str] = {}
    for change in gone[:_MOST_COMPARED]:
        name = Path(change.path).name
        here = made.get(-1 if change.size_before is None else change.size_before, [])
        here.sort(key=lambda one: Path(one.path).name != name)
        content = content_at(before, change.path) if here else None
        for target in here[:_MOST_COMPARED] if content is not None else ():
            if (content or Path(target.path).name == name) and content_at(now, target.path) == content:
                here.remove(target)
                found[change.path] = target.path
                break
    return found


def content_at(files: Files, printable: str) -> bytes | None:
    """Return the content of a file; None if it is no plain file, or too large to be compared or shown as a diff."""
    try:
        path = entry_path(files, Path(os.fsdecode(path_bytes(printable))))
        data, size = read_limited(files, path, _COMPARED_BYTES)
    except (NotPlainFile, OSError):
        return None
    return data if size <= _COMPARED_BYTES else None
