"""Files as a view shows them, read without a mount: layers over directories, with an overlay's meaning of entries.

path ──► resolve: links followed inside the view ──► at: the topmost thing of that name ──► a place on the disk
                                                 └─► names: what all layers of a directory hold together

Pure reading. One `Union` is for one look: what it has found of directories it keeps.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from artoo.world.view_place import Stratum

_MOST_LINKS = 40
"""As many links as the kernel follows in one path."""

_OVERLAY_NAMESPACES = ("user.overlay.", "trusted.overlay.")

_Pile = tuple[str, ...]
"""The directories on disk that are one directory of the view, topmost first. Empty: there is no such directory."""


@dataclass(frozen=True, slots=True)
class RealFiles:
    """The files as they are on the disk. Implements `ports.world.Files`."""

    def resolve(self, path: Path) -> Path:
        """See Files."""
        return _resolve(path, lambda text: text)

    def at(self, path: Path) -> Path | None:
        """See Files."""
        return path if _there(str(path)) is not None else None

    def names(self, directory: Path) -> tuple[str, ...]:
        """See Files."""
        return tuple(sorted(os.listdir(directory), key=os.fsencode))


@dataclass(slots=True)
class Union:
    """Files over layers. Implements `ports.world.Files`; what lies under no stratum is as it is on the disk."""

    strata: tuple[Stratum, ...]
    _piles: dict[str, _Pile] = field(default_factory=dict[str, _Pile])
    _ways: frozenset[str] = field(init=False)
    _mounted: dict[str, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.strata = tuple(sorted(self.strata, key=lambda one: len(one.root.parts), reverse=True))
        # The way to a root is there, whatever a layer around it says: something is mounted at its end.
        ways = {way for one in self.strata for way in (one.root, *one.root.parents)}
        self._ways = frozenset(map(str, ways))
        self._mounted = {
            str(way): frozenset(one.name for one in ways if one.parent == way and one != way) for way in ways
        }
        for one in self.strata:
            self._piles.setdefault(str(one.root), _pile_of(one))

    def resolve(self, path: Path) -> Path:
        """See Files."""
        return _resolve(path, self._at)

    def at(self, path: Path) -> Path | None:
        """See Files."""
        place = self._at(str(path))
        return None if place is None or _there(place) is None else Path(place)

    def names(self, directory: Path) -> tuple[str, ...]:
        """See Files."""
        text = str(directory)
        pile = self._pile(text)
        mounted = self._mounted.get(text, frozenset[str]())
        if not pile and not mounted:
            number = errno.ENOENT if self.at(directory) is None else errno.ENOTDIR
            raise OSError(number, os.strerror(number), text)
        found = os.listdir(text) if pile == (text,) else self._merged(pile, text)
        return tuple(sorted(mounted.union(found), key=os.fsencode))

    def _merged(self, pile: _Pile, path: str) -> Iterable[str]:
        """The names that are there: the topmost layer that has a name decides."""
        marked = self._layered(path)
        decided: dict[str, bool] = {}
        for layer in pile:
            for name in os.listdir(layer):
                if name not in decided:
                    decided[name] = not (marked and _is_whiteout(f"{layer}/{name}"))
        return (name for name, there in decided.items() if there)

    def _layered(self, path: str) -> bool:
        """Whether marks of an overlay mean something here."""
        stratum = self._stratum(path)
        return stratum is not None and not stratum.whole and bool(stratum.uppers)

    def _stratum(self, path: str) -> Stratum | None:
        return next((one for one in self.strata if _within(path, str(one.root))), None)

    def _at(self, path: str) -> str | None:
        """The topmost thing of that name, links not followed; None where nothing is, or a layer deleted it."""
        if path in self._ways:
            pile = self._pile(path)
            return pile[0] if pile else path
        if self._stratum(path) is None:
            return path
        parent, _, name = path.rpartition("/")
        for layer in self._pile(parent or "/"):
            place = f"{layer}/{name}"
            if _there(place) is not None:
                return None if self._layered(path) and _is_whiteout(place) else place
        return None

    def _pile(self, path: str) -> _Pile:
        """The directories that are merged at `path`: down to one that hides, or to what is no directory."""
        known = self._piles.get(path)
        if known is None:
            if self._stratum(path) is None:
                known = (path,) if _is_directory(path) else ()
            else:
                parent, _, name = path.rpartition("/")
                known = _merge(f"{place.rstrip('/')}/{name}" for place in self._pile(parent or "/"))
            self._piles[path] = known
        return known


def _pile_of(stratum: Stratum) -> _Pile:
    uppers = tuple(map(str, stratum.uppers))
    return uppers[:1] if stratum.whole and uppers else _merge((*uppers, str(stratum.root)))


def _merge(places: Iterable[str]) -> _Pile:
    """Those of the places, topmost first, that make up one directory."""
    found: list[str] = []
    for place in places:
        seen = _there(place)
        if seen is None:
            continue
        if not stat.S_ISDIR(seen.st_mode):
            break
        found.append(place)
        if _overlay_mark(place, "opaque") == b"y":
            break
    return tuple(found)


def _resolve(path: Path, at: Callable[[str], str | None]) -> Path:
    """Follows links as the kernel does, by what `at` says is there. Raises OSError (ELOOP) for a circle."""
    here, links = "/", 0
    to_go = str(path).split("/")[::-1]
    while to_go:
        part = to_go.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition("/")[0] or "/"
            continue
        ahead = f"{here.rstrip('/')}/{part}"
        target = _target(at(ahead))
        if target is None:
            here = ahead
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        if target.startswith("/"):
            here = "/"
        to_go += target.split("/")[::-1]
    return Path(here)


def _target(place: str | None) -> str | None:
    """A link's text; None for what is no link, or not there."""
    if place is None:
        return None
    try:
        return os.readlink(place)
    except OSError:
        return None


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _there(place: str) -> os.stat_result | None:
    try:
        return os.lstat(place)
    except OSError:  # what cannot be looked at is not there for whoever asks
        return None


def _is_directory(place: str) -> bool:
    seen = _there(place)
    return seen is not None and stat.S_ISDIR(seen.st_mode)


def _is_whiteout(place: str) -> bool:
    """Whether this entry of a layer says that nothing is there."""
    seen = _there(place)
    if seen is None:
        return False
    if stat.S_ISCHR(seen.st_mode):
        return seen.st_rdev == 0
    return stat.S_ISREG(seen.st_mode) and seen.st_size == 0 and _overlay_mark(place, "whiteout") is not None


def _overlay_mark(place: str, key: str) -> bytes | None:
    """One of overlay's own attributes, in whichever namespace it was written."""
    for namespace in _OVERLAY_NAMESPACES:
        try:
            return os.getxattr(place, f"{namespace}{key}", follow_symlinks=False)
        except OSError:  # it has none, or this is no file system for attributes
            continue
    return None
