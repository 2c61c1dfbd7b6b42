"""Where links lead that stand under names of consequence: whoever writes there writes under these names.

A start-up file, a hooks directory or an editor's settings may be a link into a project. What it leads to has an
ordinary path, and the links are the person's own, so only a look at them tells what it is. Looked at are the
directories that hold such names, and not the trees below them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

_OF_A_HOME = (".config", ".local", ".local/share", ".ssh", ".gnupg")
_OF_A_REPOSITORY = (".git", ".git/hooks", ".git/info")
_PROGRAMS = frozenset({"bin", "lib", "shims"})
"""A link among programs leads to what somebody works on: to change that is what it is for."""

_MOST_HOPS = 40


def places_with_names(home: str, own: Iterable[str], persists: Callable[[str], bool]) -> Iterator[str]:
    """The directories of a home, and of project and workspace (`own`), in which names of consequence stand.

    `persists`: whether what has a path is started or configures programs. Real paths.
    """
    yield home
    for place in _OF_A_HOME:
        yield f"{home}/{place}"
    for place in (home, f"{home}/.config", f"{home}/.local/share"):
        yield from _directories(place, lambda path: persists(f"{path}/any"))
    for place in own:
        yield place
        yield from (f"{place}/{inner}" for inner in _OF_A_REPOSITORY)
        yield from _directories(place, lambda path: os.path.basename(path)[0] == "." or persists(f"{path}/any"))


def _directories(place: str, wanted: Callable[[str], bool]) -> Iterator[str]:
    """Those of a directory that are wanted, but for repositories and where programs are."""
    with suppress(OSError):
        for entry in os.scandir(place):
            named = entry.name != ".git" and entry.name not in _PROGRAMS
            if named and entry.is_dir(follow_symlinks=False) and wanted(entry.path):
                yield entry.path


def links_in(places: Iterable[str]) -> Iterator[str]:
    """The links that stand in these directories; not those called `.git`: what is in a repository is git's."""
    for place in dict.fromkeys(places):
        with suppress(OSError):
            yield from (one.path for one in os.scandir(place) if one.is_symlink() and one.name != ".git")


def leads_to(link: str) -> Iterator[str]:
    """Every place that stands for what a link names: the real one at the end, and further links on the way."""
    for _ in range(_MOST_HOPS):
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError:  # no link: the end
            return
        parent, name = os.path.split(target.rstrip("/"))
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)
        yield link
