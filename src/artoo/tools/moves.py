"""Which deleted files of a workspace stand elsewhere in it: to whoever reads of it, a move is no loss."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node, path_bytes
from artoo.ports.workspace import Files
from artoo.tools.paths import entry_path
from artoo.tools.text_file import NotPlainFile, read_limited

COMPARED_BYTES = 256 * 1024
"""A file is compared up to here; a larger one is told as deleted and made."""

MOST_COMPARED = 500
"""Deleted files that are compared."""

_MOST_ALIKE = 20
"""New files of its very size that a deleted one is compared with, those of its name first."""


def moved_files(changes: Iterable[Change], before: Files, now: Files) -> dict[str, str]:
    """Where each deleted file stands now: the path of a new file with its very content, each named once. Blocks.

    What is dangerous to write where it goes, or was closed where it stood, is told as deleted and made. An empty
    file is moved only to one of its own name: anything empty is like it (as the difference tells moves).
    """
    gone: list[Change] = []
    made: dict[int, list[Change]] = defaultdict(list)
    for change in (one for one in changes if not one.sensitive):
        if change.kind is ChangeKind.DELETED and change.before is Node.FILE:
            gone.append(change)
        elif change.kind is ChangeKind.CREATED and change.node is Node.FILE and change.size_after is not None:
            made[change.size_after].append(change)
    found: dict[str, str] = {}
    for change in gone[:MOST_COMPARED]:
        here = made.get(-1 if change.size_before is None else change.size_before, [])
        if target := next(_alike(change, here, before, now), None):
            here.remove(target)
            found[change.path] = target.path
    return found


def _alike(gone: Change, made: list[Change], before: Files, now: Files) -> Iterator[Change]:
    """The new files with the content of a deleted one; those of its name first."""
    if not made or (content := content_at(before, gone.path)) is None:
        return
    name = _name(gone)
    for change in sorted(made, key=lambda one: _name(one) != name)[:_MOST_ALIKE]:
        if (content or _name(change) == name) and content_at(now, change.path) == content:
            yield change


def _name(change: Change) -> str:
    return change.path.rpartition("/")[2]


def content_at(files: Files, printable: str) -> bytes | None:
    """None for what is no plain file, or too large to be compared or shown as a diff."""
    try:
        path = entry_path(files, Path(os.fsdecode(path_bytes(printable))))
        data, size = read_limited(files, path, COMPARED_BYTES)
    except (NotPlainFile, OSError):
        return None
    return data if size <= COMPARED_BYTES else None
