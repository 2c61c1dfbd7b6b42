"""Decide what of the machine is out of reach: the one rule by which commands and tools may read.

    home          documents are open; its hidden part (dot names, application data) is closed but for programs,
                  harmless settings, project and workspace, and what a policy opens
    other homes   their hidden parts likewise
    artoo's home  closed, but for the trees of a layer
    as root       closed is also what another user of the machine could not read (`restricted`)
    mounts        what is closed is closed, and what is open is open, by every name that it has

`Closed.covers` decides about one path, for a caller that reads files itself; `Closed.paths` names the same as the
fewest places, for a caller that confines a command.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.mount_table import MountTable
from artoo.sandbox.reading.path_set import PathSet, inside
from artoo.sandbox.reading.readable_paths import closed_in_programs, open_in_home, program_places

_APPLICATION_DATA = frozenset({"library", "appdata", "application data", "local settings", "snap"})
"""Where macOS, Windows and snap keep what programs store, without a dot; file systems there fold case."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The rule that says what is out of reach of one task, but for artoo's own home. All paths are real.

    `homes`: the person's own first. `opened`: what is open of their hidden parts, by every name. `targets`: where
    hidden links lead, and files with settings among open programs: closed wherever they are. `ways`: where the task
    works, what was opened to it, and programs, which are not looked at for modes.
    """

    homes: tuple[str, ...]
    opened: PathSet
    targets: PathSet
    ways: PathSet
    mounts: MountTable

    @classmethod
    def of(cls, roots: Roots, mounts: MountTable | None = None, visible: Iterable[Path] = ()) -> Closed:
        """Return the rule for one task, by the machine's mounts (default: as they are now).

        `visible` are directories that stay visible wherever they are.
        """
        mounts = mounts or MountTable.read()
        own = os.path.realpath(roots.home)
        homes = (own, *_other_homes(own))
        asked = tuple(map(os.path.realpath, (roots.project, *roots.opened.paths)))
        works = (own, os.path.realpath(roots.workspace), *asked)
        ways = (*works, *program_places())
        chosen = (*ways, *map(os.path.realpath, visible))
        opened = mounts.by_every_name(chosen)
        opened |= {path for home in homes for path in open_in_home(home, roots)}
        never = (own, *map(os.path.realpath, (roots.project, roots.workspace)))
        targets = {path for home in homes for path in _targets(home, never)}
        settings = {path for home in homes for path in closed_in_programs(home)}
        targets |= {path for path in settings if not any(inside(path, one) for one in asked if one not in homes)}
        by_name = PathSet(mounts.by_every_name(ways))
        rule = cls(homes, PathSet(opened), PathSet(targets), by_name, mounts)
        # A mount into the hidden part closes what a link there would: not what is open by its own place.
        into = (mount for mount in mounts.aliased if rule.is_hidden(os.fsdecode(mount.point)))
        harmless = [one for one in into if any(_is_open_itself(name, own, never) for name in mounts.places_of(one))]
        return cls(homes, rule.opened, rule.targets, by_name, mounts.without(harmless)) if harmless else rule

    def covers(self, path: str) -> bool:
        """Check whether a real path is out of reach."""
        names = self.names(path)
        return any(map(self.is_hidden, names)) or any(
            is_restricted(name) and not self.ways.cover(name) for name in names
        )

    def names(self, path: str) -> tuple[str, ...]:
        """Return a real path and its other names."""
        return (path, *self.mounts.other_names(path))

    def is_hidden(self, path: str) -> bool:
        """Check whether a path lies in a hidden part by this name, and is not open."""
        if self.targets.cover(path):
            return True
        return any(_is_in_hidden_part(path, home) and not self._is_open_below(path, home) for home in self.homes)

    def _is_open_below(self, path: str, home: str) -> bool:
        """Check whether a path is, or lies in, something that is open inside a home."""
        while len(path) > len(home):
            if path in self.opened:
                return True
            path = path[: path.rfind("/")]
        return False

    def paths(self) -> Iterator[str]:
        """Yield the places that are closed, by every name."""
        hidden = [path for home in self.homes for path in self._hidden_in(home)]
        kept = tuple(place for found in restricted() for place in _around(found, self.ways))
        yield from (*hidden, *self.targets.existing(), *kept)
        if self.mounts.aliased:
            yield from self.mounts.elsewhere((*hidden, *self.targets.existing()))
            for place in self.mounts.elsewhere(kept):
                yield from _around(place, self.ways)

    def _hidden_in(self, directory: str, *, top: bool = True) -> Iterator[str]:
        try:
            names = sorted(os.listdir(directory))
        except OSError:  # not there, or not to be read by anybody that we start
            return
        for name in names if not top else filter(is_hidden_name, names):
            path = f"{directory.rstrip('/')}/{name}"
            if path in self.opened:
                continue
            if self.opened.lie_in(path):
                yield from self._hidden_in(path, top=False)
            elif not os.path.islink(path):
                yield path


def hidden_paths(
    roots: Roots,
    artoo_home: Path,
    mounts: MountTable | None = None,
    visible: Iterable[Path] = (),
) -> tuple[str, ...]:
    """Return everything on this machine that a command must not read: real paths, links followed.

    `visible` are directories in artoo's own home that commands do see: copies of the project, their /tmp.
    """
    mounts = mounts or MountTable.read()
    shown = PathSet(map(os.path.realpath, visible))
    own = list(_around(os.path.realpath(artoo_home), shown))
    own = [path for path in own if os.path.exists(path)]
    closed = Closed.of(roots, mounts, visible).paths()
    return tuple(dict.fromkeys((*own, *mounts.elsewhere(own), *closed)))


def is_hidden_name(name: str) -> bool:
    """Check whether an entry of a home belongs to its hidden part."""
    return name.startswith(".") or name.casefold() in _APPLICATION_DATA


def _is_in_hidden_part(path: str, home: str) -> bool:
    prefix = home.rstrip("/") + "/"
    return path.startswith(prefix) and is_hidden_name(path[len(prefix) :].partition("/")[0])


def _around(path: str, ways: PathSet) -> Iterator[str]:
    """Yield `path`, or everything in it but the ways to what must stay open."""
    if ways.cover(path):
        return
    if not ways.lie_in(path):
        yield path
        return
    with suppress(OSError):
        for name in sorted(os.listdir(path)):
            yield from _around(f"{path}/{name}", ways)


def _targets(home: str, never: tuple[str, ...]) -> Iterator[str]:
    """Yield the targets of links that are hidden names of a home, but for what is open by its own place."""
    with suppress(OSError):
        for entry in os.scandir(home):
            if is_hidden_name(entry.name) and entry.is_symlink():
                real = os.path.realpath(entry.path)
                if not _is_open_itself(real, home, never):
                    yield real


def _is_open_itself(real: str, home: str, never: tuple[str, ...]) -> bool:
    """Check whether closing a link's target would close what a task needs, or what everybody may read."""
    if any(inside(one, real) or (one != home and inside(real, one)) for one in never):
        return True
    return not inside(real, home) and may_everybody_read(real)


@lru_cache(maxsize=8)
def _other_homes(own: str) -> tuple[str, ...]:
    """Return the homes of users (and root) in the machine's own list, but for this one."""
    try:
        import pwd
    except ImportError:  # a system without such a list
        return ()
    homes = {os.path.realpath(one.pw_dir) for one in pwd.getpwall() if one.pw_uid == 0 or one.pw_uid >= 1000}
    return tuple(home for home in sorted(homes) if home not in (own, "/") and os.path.isdir(home))


# --- what only root could read ----------------------------------------------------------------------------------
# A plain user's commands are held by the kernel, but root's pass every permission. So the files that the machine's
# other users cannot read (`/etc/shadow`, host keys, a database's directory, the homes of others) are looked up and
# closed.


_PLACES = ("/etc", "/var", "/home", "/root", "/srv", "/opt", "/mnt", "/media", "/usr/local", "/boot")
_MOST_ENTRIES = 60_000
_KEPT_SECONDS = 120.0


def restricted() -> tuple[str, ...]:
    """Files and directories that only their owner or group may read, outermost only. Nothing for a plain user.

    A directory that holds nothing else is named in their place: each place costs every command some time. What was
    found holds for two minutes, without what has gone since: nothing can be laid over it. Of a machine with very
    many entries the shallow ones are looked at.
    """
    if os.geteuid() != 0:
        return ()
    return tuple(place for place in _found(int(time.monotonic() / _KEPT_SECONDS)) if os.path.lexists(place))


def is_restricted(path: str) -> bool:
    """Check whether a real path, looked up for itself, is one that only its owner or group may read."""
    if os.geteuid() != 0 or not any(inside(path, place) for place in _PLACES):
        return False
    return any(_is_closed(one) for one in (path, *map(str, Path(path).parents)))


def may_everybody_read(path: str) -> bool:
    """Check whether every user of this machine may read a path, and only root may change it."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return _open_to_all(status.st_mode) and status.st_uid == 0


@lru_cache(maxsize=1)
def _found(turn: int) -> tuple[str, ...]:
    return tuple(restricted_in(_PLACES))


def restricted_in(places: tuple[str, ...]) -> Iterator[str]:
    """Find restricted paths (see `restricted`) in these places, as they are now. Blocking."""
    seen = 0
    waiting = deque(places)
    open_directories: list[str] = []
    entries: dict[str, int] = {}
    closed: dict[str, list[str]] = {}
    while waiting and seen < _MOST_ENTRIES:
        directory = waiting.popleft()
        try:
            if not _open_to_all(os.lstat(directory).st_mode):
                closed.setdefault(os.path.dirname(directory), []).append(directory)
                continue
            listed = list(os.scandir(directory))
        except OSError:
            continue
        open_directories.append(directory)
        entries[directory] = len(listed)
        seen += len(listed)
        for entry in listed:
            status = _status(entry)
            if status is None:
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(entry.path)
            elif not _open_to_all(status.st_mode):
                closed.setdefault(directory, []).append(entry.path)
    for directory in reversed(open_directories):  # what holds nothing else is one place, not hundreds
        if len(closed.get(directory, ())) == entries[directory] > 0:
            del closed[directory]
            closed.setdefault(os.path.dirname(directory), []).append(directory)
    for found in closed.values():
        yield from found


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a file or directory; None for anything else, which holds nothing to be read."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else None


def _is_closed(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:  # nothing there
        return False
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return plain and not _open_to_all(status.st_mode)


def _open_to_all(mode: int) -> bool:
    if stat.S_ISDIR(mode):
        return bool(mode & stat.S_IXOTH)
    return bool(mode & stat.S_IROTH)
