"""Classify paths by location (project, home, start-up file), with the names in `start_names.txt` that tools run.

The functions take resolved, absolute byte paths; the user's links are read once.

Another module (`silent_rule`) decides which changes may be applied without approval. A written file may be executed
later even if its path looks ordinary. For example, a start-up file, a hook or an editor's settings may be a link
into the project. A file in a directory of PATH may shadow `git`. A file among artoo's modules is a part of artoo.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from artoo.contracts.changes import PathClass, is_visible
from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.hidden_paths import Closed
from artoo.sandbox.reading.path_set import PathSet, inside, upwards

_OF_A_HOME = ("", ".config", ".local", ".local/share", ".ssh", ".gnupg")
_OF_A_PROJECT = ("", ".git", ".git/hooks", ".git/info")
_MOST_HOPS = 40
_SLASH = ord("/")


@dataclass(frozen=True, slots=True)
class Places:
    """The directories on which the class of a path depends, resolved, absolute, as bytes.

    `started`: targets of the user's links with names of start-up files, directories of PATH, and artoo's own
    modules. A file written there may be executed without the user's request.
    """

    home: bytes
    workspace: bytes
    project: bytes
    artoo: bytes
    hidden: Closed = field(compare=False)
    started: PathSet = field(default=PathSet(()), compare=False)
    _secrets: dict[str, bool] = field(default_factory=dict[str, bool], compare=False)

    @classmethod
    def of(cls, roots: Roots, artoo_home: Path) -> Places:
        """Determine these places from the user's links and PATH as they are now. Blocking."""
        home, workspace, project, artoo = (
            os.fsencode(os.path.realpath(path)) for path in (roots.home, roots.workspace, roots.project, artoo_home)
        )
        places = cls(home, workspace, project, artoo, Closed.of(roots))
        own = (os.fsdecode(project), os.fsdecode(workspace))
        at_home = os.fsdecode(home)
        # A dotfile is often a link into a repository. Writing to its target changes the dotfile.
        found = {*_link_targets(at_home, own), *_program_places(at_home, own[0], os.fsdecode(artoo))}
        # A link to the whole home or project does not make every file in it a start-up file.
        whole = {above for one in (at_home, *own) for above in upwards(one)}
        return replace(places, started=PathSet(found - whole))

    def classify(self, path: bytes) -> PathClass:
        """Return the class of a resolved absolute path."""
        if _below(path, self.artoo) is not None:
            return PathClass.ARTOO
        (bounds, _), name = self._bounds(path), os.fsdecode(path)
        if self._is_secret(name):
            return PathClass.SECRET
        if self.started.cover(name):
            return PathClass.PERSISTENCE
        if bounds is not None:
            return bounds
        below = _below(path, self.home)
        if below is None:
            return PathClass.OUTSIDE
        unusual = bool(below) and why_not_ordinary(below.split(b"/")) is not None
        return PathClass.PERSISTENCE if unusual else PathClass.HOME

    def _is_secret(self, path: str) -> bool:
        """Check the directory of a path (the result is cached). If the name of the path begins with a dot, also
        check the path itself."""
        directory, _, name = path.rpartition("/")
        if directory not in self._secrets:
            self._secrets[directory] = self.hidden.covers(directory or "/")
        return self._secrets[directory] or (name.startswith(".") and self.hidden.covers(path))

    def is_hidden(self, path: bytes) -> bool:
        """True if commands and tools may not read the resolved absolute path (`sandbox.reading.hidden_paths`)."""
        names = self.hidden.names(os.fsdecode(path))
        return any(inside(one, os.fsdecode(self.artoo)) for one in names) or self.hidden.covers(names[0])

    def within_bounds(self, path: bytes) -> bool:
        """True if a path lies in the project or the output folder, whatever its class is."""
        return self._bounds(path)[0] is not None

    def below_bounds(self, path: bytes) -> bytes | None:
        """Return the part of a path below the project or output folder, or None if it is outside of both."""
        bounds, below = self._bounds(path)
        return None if bounds is None else below

    def _bounds(self, path: bytes) -> tuple[PathClass | None, bytes]:
        """Return the class of the directory that contains a path (workspace, project or None), and the part of the
        path below that directory.

        If the project is the user's home directory itself, its hidden directories are not part of the project. If
        the project or the workspace contains the whole home directory, it does not count.
        """
        below = _below(path, self.workspace)
        if below is not None and _below(self.home, self.workspace) is None:
            return PathClass.WORKSPACE, below
        below = _below(path, self.project)
        if below is None:
            return None, b""
        if self.home == self.project:
            return (PathClass.PROJECT if below and not below.startswith(b".") else None), below
        return (PathClass.PROJECT if _below(self.home, self.project) is None else None), below


def _below(path: bytes, directory: bytes) -> bytes | None:
    """Return the part of `path` below `directory`, empty for the directory itself, None if it is elsewhere."""
    if not path.startswith(directory):
        return None
    if len(path) == len(directory):
        return b""
    if directory.endswith(b"/"):
        return path[len(directory) :]
    return path[len(directory) + 1 :] if path[len(directory)] == _SLASH else None


def _link_targets(home: str, own: Iterable[str]) -> Iterator[str]:
    """Yield the targets of links with names of start-up files in the home, the project and the output folder.

    Only the directories that contain such names, and their hidden subdirectories, are read. Directory trees are not
    searched.
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
    """Return the hidden subdirectories of a directory, or all subdirectories if it is hidden itself. `.git` is left
    out."""
    hidden = "/." in place
    with suppress(OSError):
        entries = [one for one in os.scandir(place) if one.is_dir(follow_symlinks=False) and one.name != ".git"]
        return [one.path for one in entries if hidden or one.name.startswith(".")]
    return []


def _targets(link: str) -> Iterator[str]:
    """Yield each target in a chain of links, ending with the resolved path."""
    for _ in range(_MOST_HOPS):
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError:  # not a link, so the chain ends
            return
        parent, name = os.path.split(target.rstrip("/"))
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(parent), name)
        yield link


def _program_places(home: str, project: str, artoo_home: str) -> Iterator[str]:
    """Yield the directories from which programs are started: those of PATH (relative to the project), those that
    npx searches, and artoo's modules.

    `~/bin` is included even if PATH does not contain it now, because the profiles of common distributions add it at
    the next login. For a directory that does not exist, its first missing parent is yielded, because a link could
    be made there.
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
    """Return the directory of the program that uses artoo as a library. This directory is often the project."""
    started = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(started)) if started else None


# --- names ------------------------------------------------------------------------------------------------------


HIDDEN = "its name is hidden, and programs read such files by themselves"
INVISIBLE = "its name has characters that cannot be seen"
STARTED = "a build tool, test runner or interpreter starts it by itself"
_WILD = frozenset("*?[")


def why_not_ordinary(parts: Sequence[bytes], *, is_directory: bool = False) -> str | None:
    """Return the reason why the names in a path are not ordinary, or None if they are."""
    above, name = tuple(parts[:-1]), parts[-1]
    if above and (reason := _why_above(above)) is not None:
        return reason
    if name.startswith(b"."):
        return HIDDEN
    if not _is_visible(name):
        return INVISIBLE
    folded = os.fsdecode(name).casefold()
    files, directories, deep = _started()
    known = directories if is_directory else files
    if folded in known or (above and f"{os.fsdecode(above[-1]).casefold()}/{folded}" in known.plain):
        return STARTED
    return STARTED if not is_directory and deep.match(os.fsdecode(b"/".join(parts)).casefold()) else None


@lru_cache(maxsize=10_000)
def _why_above(parts: tuple[bytes, ...]) -> str | None:
    return why_not_ordinary(parts, is_directory=True)


def _is_visible(name: bytes) -> bool:
    try:
        text = name.decode()
        return text.isprintable() if text.isascii() else all(map(is_visible, text))
    except UnicodeDecodeError:
        return False


class _Names:
    """Names and patterns of names that programs start by themselves. Plain names, prefixes and suffixes are matched
    without a regular expression, because that is faster."""

    def __init__(self, listed: Sequence[str]) -> None:
        wild = [one for one in listed if _WILD & set(one)]
        self.plain = frozenset(listed).difference(wild)
        self._beginnings = tuple(one[:-1] for one in wild if one[-1] == "*" and not _WILD & set(one[:-1]))
        self._endings = tuple(one[1:] for one in wild if one[0] == "*" and not _WILD & set(one[1:]))
        simple = {*(f"{one}*" for one in self._beginnings), *(f"*{one}" for one in self._endings)}
        self._others = re.compile("|".join(translate(one) for one in wild if one not in simple) or "(?!)")

    def __contains__(self, name: str) -> bool:
        plain = name in self.plain or name.startswith(self._beginnings) or name.endswith(self._endings)
        return plain or self._others.match(name) is not None


@cache
def _started() -> tuple[_Names, _Names, re.Pattern[str]]:
    """Return the patterns for file names, for directory names (both may include the name of the parent), and for
    paths.

    Path patterns come from entries such as `test/*.js`, which match files at any depth below the directory.
    """
    text = resources.files("artoo.workspace.changes").joinpath("start_names.txt").read_text("utf-8")
    names = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    files = [one for one in names if one[-1] != "/"]
    deep = {one for one in files if "/" in one and _WILD & set(one)}
    below = re.compile(f"(?:.*/)?(?:{'|'.join(map(translate, sorted(deep)))})")
    plain = [one for one in files if one not in deep]
    return _Names(plain), _Names([one[:-1] for one in names if one[-1] == "/"]), below
