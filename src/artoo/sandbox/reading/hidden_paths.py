"""What of the machine is out of reach: the one rule by which commands and tools may read.

    home          documents are open; its hidden part (dot names, application data) is closed but for programs,
                  harmless settings, project and workspace, and what a policy opens
    other homes   their hidden parts likewise
    artoo's home  closed, but for the trees of a layer
    as root       closed is also what another user of the machine could not read (`restricted`)
    mounts        what is closed is closed, and what is open is open, by every name that it has (`aliases`)

`Closed.covers` decides about one path, for whoever reads files itself; `Closed.paths` names the same as the fewest
places, for whoever confines a command.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.bind_mount_aliases import Alias, Aliases, aliases_in
from artoo.sandbox.reading.mount_table import MountTable
from artoo.sandbox.reading.path_set import PathSet, inside, path_set
from artoo.sandbox.reading.readable_paths import closed_in_programs, open_in_home, program_places
from artoo.sandbox.reading.root_only_paths import is_restricted, may_everybody_read, restricted

_APPLICATION_DATA = frozenset({"library", "appdata", "application data", "local settings", "snap"})
"""Where macOS, Windows and snap keep what programs store, without a dot; file systems there fold case."""


def is_hidden_name(name: str) -> bool:
    """Whether an entry of a home belongs to its hidden part."""
    return name.startswith(".") or name.casefold() in _APPLICATION_DATA


@dataclass(frozen=True, slots=True)
class ClosedHome:
    """The hidden part of one home and what of it is open. Real paths.

    `targets`: where its hidden links lead. `settings`: files that are closed among open programs.
    """

    home: str
    opened: tuple[str, ...]
    targets: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, home: str, chosen: Iterable[str], roots: Roots) -> ClosedHome:
        """That of a home (real), the task's or another one. `chosen` is open there besides programs."""
        opened = {*open_in_home(home, roots), *_below(home, chosen)}
        asked = [one for one in map(os.path.realpath, (roots.project, *roots.opened.paths)) if one != home]
        settings = (one for one in closed_in_programs(home) if not any(inside(one, place) for place in asked))
        return cls(home, tuple(sorted(opened)), tuple(_targets(home, roots)), tuple(settings))

    def covers(self, path: str) -> bool:
        """Whether a real path lies in the hidden part and is not open."""
        if path in self.settings or any(inside(path, one) for one in self.targets):
            return True
        name = first_below(path, self.home)
        return bool(name) and is_hidden_name(name) and not any(inside(path, one) for one in self.opened)

    def paths(self) -> Iterator[str]:
        """The places that are closed, outermost only."""
        yield from self._in(self.home, path_set(self.opened), hidden_only=True)
        yield from self.settings

    def _in(self, directory: str, opened: PathSet, *, hidden_only: bool) -> Iterator[str]:
        try:
            names = sorted(os.listdir(directory))
        except OSError:  # not there, or not to be read by anybody that we start
            return
        for name in names:
            path = f"{directory.rstrip('/')}/{name}"
            if hidden_only and not is_hidden_name(name):
                continue
            if path in opened:
                continue
            if opened.lie_in(path):
                yield from self._in(path, opened, hidden_only=False)
            else:
                yield path


@dataclass(frozen=True, slots=True)
class Closed:
    """What is out of reach of one task, but for artoo's own home. `homes`: the person's own first."""

    roots: Roots
    homes: tuple[ClosedHome, ...]
    aliases: Aliases

    @classmethod
    def of(cls, roots: Roots, mounts: MountTable | None = None, visible: Iterable[Path] = ()) -> Closed:
        """Return the rule for one task, by the machine's mounts (default: as they are now).

        `visible` are directories that stay visible wherever they are.
        """
        own = os.path.realpath(roots.home)
        known = aliases_in(mounts or MountTable.read())
        chosen = (own, *map(os.path.realpath, (roots.project, roots.workspace, *roots.opened.paths, *visible)))
        opened = tuple(_by_every_name((*chosen, *(program_places() if known else ())), known))
        homes = tuple(ClosedHome.of(home, opened, roots) for home in (own, *_other_homes(own)))
        return cls(roots, homes, Aliases.of(_that_close(known, homes, roots)))

    def covers(self, path: str) -> bool:
        """Whether a real path is out of reach."""
        if any(home.covers(path) for home in self.homes):
            return True
        if is_restricted(path) and not any(inside(path, one) for one in _ways(self.roots)):
            return True
        return any(self._is_closed_as(name, path, alias) for name, alias in self.aliases.names(path))

    def names(self, path: str) -> tuple[str, ...]:
        """A real path and its other names."""
        return (path, *(name for name, _ in self.aliases.names(path)))

    def paths(self) -> Iterator[str]:
        """The real places that are closed, by every name."""
        ways = path_set(_ways(self.roots))
        hidden = tuple(self._hidden())
        kept = tuple(place for found in restricted() for place in _around(found, ways))
        yield from (*hidden, *kept)
        yield from (place for place, _ in self.aliases.elsewhere(hidden))
        for place, alias in self.aliases.elsewhere(kept, parts=False):  # a part has modes of its own there
            if not _is_on_a_way(place, alias, ways):
                yield from _around(place, ways) if ways.lie_in(place) else (place,)

    def _is_closed_as(self, name: str, path: str, alias: Alias) -> bool:
        if any(home.covers(name) for home in self.homes):
            return True
        if not is_restricted(name) or is_restricted(os.path.dirname(alias.here)):
            return False
        return not _is_on_a_way(path, alias, path_set(_ways(self.roots)))

    def _hidden(self) -> Iterator[str]:
        for home in self.homes:
            yield from (path for path in home.paths() if not os.path.islink(path))
            yield from (path for path in home.targets if os.path.lexists(path))


def _is_on_a_way(path: str, alias: Alias, ways: PathSet) -> bool:
    """Whether a path lies where a task works by more than this alias, which may lead from there to anywhere."""
    return ways.cover(path) and (alias.there in ways or not ways.cover(alias.there))


def _by_every_name(paths: Iterable[str], known: tuple[Alias, ...]) -> Iterator[str]:
    aliases = Aliases.of(known)
    for path in paths:
        yield from (path, *(name for name, _ in aliases.names(path)))


def _that_close(known: tuple[Alias, ...], homes: tuple[ClosedHome, ...], roots: Roots) -> Iterator[Alias]:
    """Those by which something may be closed: what is mounted into a hidden part closes what a link there would."""
    for one in known:
        mounted_into = any(home.covers(one.point) for home in homes)
        if not mounted_into or not _is_open_itself(one.there, homes[0].home, roots):
            yield one


def hidden_paths(
    roots: Roots,
    artoo_home: Path,
    hide: Iterable[Path] = (),
    mounts: MountTable | None = None,
    visible: Iterable[Path] = (),
) -> tuple[str, ...]:
    """Return everything on this machine that a command must not read: real paths, links followed.

    `visible` are directories in artoo's own home that commands do see: copies of the project, their /tmp.
    """
    own = tuple(_existing((*_beside(artoo_home.resolve(), visible), *hide)))
    mounts = mounts or MountTable.read()
    too = (place for place, _ in Aliases.of(aliases_in(mounts)).elsewhere(own))
    return tuple(dict.fromkeys((*own, *too, *Closed.of(roots, mounts, visible).paths())))


def _around(path: str, ways: PathSet) -> Iterator[str]:
    """`path`, or everything in it beside the ways to what must stay open."""
    if ways.cover(path):
        return
    if not ways.lie_in(path):
        yield path
        return
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return
    for name in names:
        yield from _around(f"{path}/{name}", ways)


def _ways(roots: Roots) -> tuple[str, ...]:
    """Where a task works, what was opened to it, and programs: what belongs to it is not looked at for modes."""
    return (*_never_closed(roots), *map(os.path.realpath, roots.opened.paths), *program_places())


def _targets(home: str, roots: Roots) -> Iterator[str]:
    """Where links lead that are hidden names of a home, but for what is open by its own place."""
    try:
        entries = [one for one in os.scandir(home) if is_hidden_name(one.name) and one.is_symlink()]
    except OSError:
        return
    for entry in entries:
        real = os.path.realpath(entry.path)
        if not _is_open_itself(real, home, roots):
            yield real


def _is_open_itself(real: str, home: str, roots: Roots) -> bool:
    """Whether to close what a link leads to would close what a task needs, or what everybody may read."""
    if any(inside(one, real) for one in _never_closed(roots)):
        return True
    own = (roots.project, roots.workspace)
    if any(inside(real, os.path.realpath(one)) for one in own if os.path.realpath(one) != home):
        return True
    return not inside(real, home) and may_everybody_read(real)


def _never_closed(roots: Roots) -> tuple[str, ...]:
    """What a command cannot do without: to close what holds one of these would close it too."""
    return tuple(os.path.realpath(path) for path in (roots.home, roots.project, roots.workspace))


@lru_cache(maxsize=8)
def _other_homes(own: str) -> tuple[str, ...]:
    """The homes of people (and root) in the machine's own list, but for this one."""
    try:
        import pwd
    except ImportError:  # a system without such a list
        return ()
    homes = {os.path.realpath(one.pw_dir) for one in pwd.getpwall() if one.pw_uid == 0 or one.pw_uid >= 1000}
    return tuple(home for home in sorted(homes) if home not in (own, "/") and os.path.isdir(home))


def _beside(artoo_home: Path, visible: Iterable[Path]) -> Iterator[Path]:
    """Yield artoo's home (real), or everything in it that is not on the way to one of `visible`."""
    shown = path_set(tuple(os.path.realpath(path) for path in visible))
    yield from map(Path, _around(str(artoo_home), shown))


def _existing(paths: Iterable[Path]) -> Iterator[str]:
    """The real paths of those that exist; links are resolved, so that what they lead to is meant."""
    for path in paths:
        with suppress(OSError):
            yield os.path.realpath(path, strict=True)


def first_below(path: str, directory: str) -> str:
    """The first name of a path below a directory; empty when it lies elsewhere, or is the directory."""
    prefix = directory.rstrip("/") + "/"
    return path[len(prefix) :].partition("/")[0] if path.startswith(prefix) else ""


def _below(directory: str, paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if first_below(path, directory))
