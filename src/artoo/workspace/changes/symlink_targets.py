"""Finds where the user's own links lead that have the names of start-up files or secrets.

A start-up file, a hooks directory or an editor's settings may be a link into the project: writing the target
writes the start-up file, although the target's path looks ordinary. Only the directories that hold such names are
read, and not the trees below them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

_OF_A_HOME = (".config", ".local", ".local/share", ".ssh", ".gnupg")
_OF_A_REPOSITORY = (".git", ".git/hooks", ".git/info")
_PROGRAMS = frozenset({"bin", "lib", "shims"})
"""Directories whose links are not followed: a link among programs leads to what the user develops."""

_MOST_HOPS = 40


def directories_with_names(home: str, own: Iterable[str], persists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the directories of a home, and of project and output folder (`own`), that hold such names.

    `persists`: True for a path that is started by itself or configures programs. Real paths.
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
    """Yield the wanted subdirectories, without repositories and directories of programs."""
    with suppress(OSError):
        for entry in os.scandir(place):
            named = entry.name != ".git" and entry.name not in _PROGRAMS
            if named and entry.is_dir(follow_symlinks=False) and wanted(entry.path):
                yield entry.path


def links_in(places: Iterable[str]) -> Iterator[str]:
    """Yield the links in these directories, except those named `.git`: git's specialist judges a repository."""
    for place in dict.fromkeys(places):
        with suppress(OSError):
            yield from (one.path for one in os.scandir(place) if one.is_symlink() and one.name != ".git")


def targets_of(link: str) -> Iterator[str]:
    """Yield every path that means what the link names: the real one at the end, and further links on the way."""
    for _ in range(_MOST_HOPS):
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError:  # no link: this is the end
            return
        parent, name = os.path.split(target.rstrip("/"))
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)
        yield link
