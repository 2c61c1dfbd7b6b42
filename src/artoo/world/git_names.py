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

_TRIED = (
    ("", ""),
    ("refs/", ""),
    ("refs/tags/", ""),
    ("refs/heads/", ""),
    ("refs/remotes/", ""),
    ("refs/remotes/", "/HEAD"),
)
"""What git puts around a short name to find the full one, in this order: gitrevisions(7)."""

MOST_SHOWN = 5


def names_in_the_way(names: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """New names that change what older ones mean."""
    if any(names.get(name) != oid for name, oid in new.items() if name.startswith("refs/replace/")):
        yield "objects are replaced by others"
    below = [name for name in new if name not in names and any(str(above) in names for above in Path(name).parents)]
    if below:
        yield f"{', '.join(below[:MOST_SHOWN])} lies below another name"
    hiding = [f"{one} hides {older}" for one, older in _hidden(names, new)]
    if hiding:
        yield f"a short name would mean something else: {', '.join(hiding[:MOST_SHOWN])}"


def _hidden(names: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each new name that git tries before an older one when it is given the same short name, and that one."""
    for older in names:
        for rank, (start, end) in enumerate(_TRIED):
            if not (older.startswith(start) and older.endswith(end)):
                continue
            short = older[len(start) : len(older) - len(end)]
            for earlier, last in _TRIED[:rank]:
                one = f"{earlier}{short}{last}"
                if short and one in new and one not in names:
                    yield one, older


def names_led_elsewhere(
    names: Mapping[str, str], symbolic: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[str]:
    """Older names that now stand for another name, or for another one than before: what is done under them later
    happens to that one."""
    led = [f"{one} leads to {to}" for one, to in new.items() if one in names and symbolic.get(one) != to]
    led = [one for one in led if not one.startswith(_FREE_NAMES)]
    if led:
        yield ", ".join(led[:MOST_SHOWN])


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
