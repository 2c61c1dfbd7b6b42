"""What becomes of the names of a repository: which are gone, moved, hidden by others, or lead elsewhere.

Pure functions over full names and the objects that they name, before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from artoo.world.git_shadow import Shadow

_BRANCHES = "refs/heads/"
_FREE_NAMES = ("HEAD", "worktrees/", "refs/remotes/", "refs/stash", "refs/artoo/")
"""Names that may go or jump as long as what they reached is reachable."""

MOST_SHOWN = 5


def names_in_the_way(names: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """New names that change what older ones mean."""
    if any(names.get(name) != oid for name, oid in new.items() if name.startswith("refs/replace/")):
        yield "objects are replaced by others"
    below = [name for name in new if name not in names and any(str(above) in names for above in Path(name).parents)]
    if below:
        yield f"{', '.join(below[:MOST_SHOWN])} lies below another name"


def names_lost(
    names: Mapping[str, str], new: Mapping[str, str], will_be: Shadow
) -> tuple[Sequence[str], Sequence[str]]:
    """The names that are removed, and those that are moved, and not forward."""
    removed: list[str] = []
    moved: list[str] = []
    for name, oid in names.items():
        if name.startswith(_FREE_NAMES) or new.get(name) == oid:
            continue
        if name not in new:
            removed.append(name)
        elif not name.startswith(_BRANCHES) or not will_be.follows(oid, new[name]):
            moved.append(name)
    return removed, moved


def said_of_names(removed: Sequence[str], moved: Sequence[str]) -> Iterator[str]:
    for listed, what in ((removed, "is removed"), (moved, "is moved, and not forward")):
        if listed:
            more = f" and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
            yield f"{', '.join(listed[:MOST_SHOWN])}{more} {what}"
