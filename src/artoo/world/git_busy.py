"""Git at work: whoever replaces NAME in a repository holds NAME.lock until it is done; no other git writes it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from artoo.contracts.errors import SandboxError
from artoo.world.files import Reach
from artoo.world.move import seen_at

_REPOSITORY, _OBJECTS, _LOCK = "/.git/", "/.git/objects/", ".lock"
_PATIENCE_SECONDS = 2.0
"""A prompt's `git status` holds the index for some milliseconds."""
_BETWEEN_TRIES_SECONDS = 0.05


def wait_for_git(places: Iterable[tuple[str, str]]) -> None:
    """Returns when git holds nothing of what is to be changed; `places` are roots and paths below them, printable.

    A lock that is changed itself is no hindrance. Raises SandboxError when one stays.
    Blocking.
    """
    listed = [(root, relative) for root, relative in places if _is_locked_by_git(f"{root}/{relative}")]
    changed = set(listed)
    held = [(root, lock) for root, relative in listed if (root, lock := f"{relative}{_LOCK}") not in changed]
    until = time.monotonic() + _PATIENCE_SECONDS
    while held := _there(held):
        if time.monotonic() >= until:
            root, lock = held[0]
            raise SandboxError(
                f"git is at work in this repository ({root}/{lock}), so nothing was changed; try again when it has"
                " ended, or remove that file if no git runs any more"
            )
        time.sleep(_BETWEEN_TRIES_SECONDS)


def _is_locked_by_git(path: str) -> bool:
    return _REPOSITORY in path and _OBJECTS not in path


def _there(places: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    with Reach() as reach:
        return [(root, relative) for root, relative in places if seen_at(reach, root, relative) is not None]
