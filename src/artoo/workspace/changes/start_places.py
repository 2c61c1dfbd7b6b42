"""Finds where a written file runs although its path looks ordinary: link targets, PATH, artoo's own modules.

A start-up file, a hook or an editor's settings may be a link into the project: writing its target writes the
start-up file. A file in a directory of PATH may be the user's next `git`, and a file among artoo's modules is part
of artoo.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from artoo.sandbox.reading.path_set import upwards
from artoo.workspace.changes.start_names import why_not_ordinary

_OF_A_HOME = ("", ".config", ".local", ".local/share", ".ssh", ".gnupg")
_OF_A_PROJECT = ("", ".git", ".git/hooks", ".git/info")
_MOST_HOPS = 40


def link_targets(home: str, own: Iterable[str]) -> Iterator[str]:
    """Yield what links with names of start-up files lead to, from the home and from project and output folder.

    Only the directories that hold such names are read, and hidden ones in them, not the trees below.
    """
    roots = ((home, _OF_A_HOME), *((one, _OF_A_PROJECT) for one in own))
    for root, inner in roots:
        known = [f"{root}/{one}".rstrip("/") for one in inner]
        for place in dict.fromkeys((*known, *(one for above in known for one in _configured(above)))):
            with suppress(OSError):
                links = [one.path for one in os.scandir(place) if one.is_symlink() and one.name != ".git"]
                for link in links:
                    if why_not_ordinary(os.fsencode(link[len(root) :].strip("/")).split(b"/")):
                        yield from _targets(link)


def _configured(place: str) -> list[str]:
    """Return hidden subdirectories, and all of a hidden directory, without repositories."""
    hidden = "/." in place
    with suppress(OSError):
        entries = [one for one in os.scandir(place) if one.is_dir(follow_symlinks=False) and one.name != ".git"]
        return [one.path for one in entries if hidden or one.name.startswith(".")]
    return []


def _targets(link: str) -> Iterator[str]:
    """Yield every path that means what the link names: the real one at the end, and further links on the way."""
    for _ in range(_MOST_HOPS):
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError:  # no link: this is the end
            return
        parent, name = os.path.split(target.rstrip("/"))
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)
        yield link


def program_places(home: str, project: str, artoo_home: str) -> Iterator[str]:
    """Yield the directories of PATH (relative ones count from the project), where npx looks, and artoo's modules.

    `~/bin` counts even if PATH lacks it now, because the profiles of common distributions add it at the next login.
    A directory that is missing is named by its first missing step, which could be made a link.
    """
    named = [os.path.join(project, one) for one in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    packages = [f"{above}/node_modules/.bin" for above in upwards(artoo_home) if above != "/"]
    environment = [sys.prefix] if sys.prefix != sys.base_prefix else []
    modules = [one for one in sys.path if os.path.isabs(one) and one != _script_directory()]
    for path in (*named, f"{home}/bin", *packages, *environment, *modules, str(Path(__file__).parents[2])):
        for one in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            while not os.path.lexists(one) and not os.path.lexists(os.path.dirname(one)):
                one = os.path.dirname(one)
            yield one


def _script_directory() -> str | None:
    """Return where the program lies that uses artoo as a library: often that is the project."""
    started = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(started)) if started else None
