"""What of a git repository goes together: of HEAD without its index, or a branch without its objects, git makes
something that nobody did.

state     where HEAD and the names are, what is staged, an operation under way, and the record of it
files     those whose entry in the index is another one: what is staged or committed is in them
objects   what state needs; more of them than it needs hurts nobody
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artoo.world.git_index import staged_by_path
from artoo.world.git_layout import Part, part_of, without_worktree

_STATE = frozenset({Part.STATE, Part.INDEX, Part.OPERATION})

Moved = Callable[[bytes], bool]
"""Whether the index says something else of a path (relative to where the files are)."""


def is_object(inner: str) -> bool:
    """Whether a path of a repository is one of its objects, or a directory of them."""
    return part_of(inner) is Part.STATE and inner.startswith("objects/")


def is_state(inner: str) -> bool:
    """Whether a path of a repository is of its state."""
    return part_of(inner) in _STATE and inner != "objects" and not is_object(inner)


def decides(inner: str) -> bool:
    """Whether state cannot be without this: a record that only grew elsewhere leaves the rest what it is."""
    return is_state(inner) and not without_worktree(inner).startswith("logs")


def worktree_of(repository: Path) -> Path | None:
    """Where the files are of which the repository's own index speaks; None where that is elsewhere, or nowhere."""
    return repository.parent if repository.name == ".git" else None


def moved_entries(old: bytes | None, new: bytes | None) -> Moved:
    """What differs between two indexes (None: there is none). In one that cannot be read here everything may."""
    was, now = (dict[bytes, bytes]() if content is None else staged_by_path(content) for content in (old, new))
    if was is None or now is None:
        return lambda path: True
    return lambda path: was.get(path) != now.get(path)
