"""Decide the hidden paths of the machine, for commands and tools alike, such as dot names and secrets.

The same rule applies to commands and to tools.

    home          documents are open; the hidden part (dot names, application data) is closed, except programs,
                  harmless settings, project and workspace, and paths that a policy opens
    other homes   their hidden parts are closed in the same way
    artoo's home  closed, except the directories of a layer
    as root       paths that other users of the machine cannot read are closed too (`restricted`)
    mounts        a path is closed or open under every name that it has by bind mounts

`Closed.covers` decides about one path, for callers that read files themselves. `Closed.paths` lists the same paths
as a minimal set of directories and files, for callers that confine a command.
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
"""Directories without a leading dot in which macOS, Windows and snap keep application data. The names are in lower
case, because file names on these systems are not case-sensitive."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The rule that decides which paths one task may not read. artoo's own home is not part of it. All paths are
    resolved.

    `homes`: the home directories, the user's own first. `opened`: paths in hidden parts that are open nevertheless,
    with every name that they have. `targets`: targets of hidden links, and settings files among open programs.
    These are always closed. `ways`: the task's directories, paths that are opened for it, and programs. The modes
    of files in them are not checked.
    """

    homes: tuple[str, ...]
    opened: PathSet
    targets: PathSet
    ways: PathSet
    mounts: MountTable

    @classmethod
    def of(cls, roots: Roots, mounts: MountTable | None = None, visible: Iterable[Path] = ()) -> Closed:
        """Return the rule for one task. `mounts`: the machine's mounts (default: the present ones).

        `visible` are directories that stay visible, whatever contains them.
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
        # A mount in the hidden part closes its source too, unless the source is open under its own path.
        into = (mount for mount in mounts.aliased if rule.is_hidden(os.fsdecode(mount.point)))
        harmless = [one for one in into if any(_is_open_itself(name, own, never) for name in mounts.places_of(one))]
        return cls(homes, rule.opened, rule.targets, by_name, mounts.without(harmless)) if harmless else rule

    def covers(self, path: str) -> bool:
        """Check whether a resolved path is closed."""
        names = self.names(path)
        return any(map(self.is_hidden, names)) or any(
            is_restricted(name) and not self.ways.cover(name) for name in names
        )

    def names(self, path: str) -> tuple[str, ...]:
        """Return a resolved path and its other names by bind mounts."""
        return (path, *self.mounts.other_names(path))

    def is_hidden(self, path: str) -> bool:
        """Check whether a path, under this name, is in the hidden part of a home and is not open."""
        if self.targets.cover(path):
            return True
        return any(_is_in_hidden_part(path, home) and not self._is_open_below(path, home) for home in self.homes)

    def _is_open_below(self, path: str, home: str) -> bool:
        """Check whether a path, or a directory above it inside the home, is open."""
        while len(path) > len(home):
            if path in self.opened:
                return True
            path = path[: path.rfind("/")]
        return False

    def paths(self) -> Iterator[str]:
        """Yield the closed paths under every name that they have."""
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
        except OSError:  # the directory is missing, or commands cannot read it in any case
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
    """Return all paths on this machine that a command must not read. Symlinks are resolved.

    `visible`: directories in artoo's own home that commands may see. These are copies of the project and the task's
    /tmp.
    """
    mounts = mounts or MountTable.read()
    shown = PathSet(map(os.path.realpath, visible))
    own = list(_around(os.path.realpath(artoo_home), shown))
    own = [path for path in own if os.path.exists(path)]
    closed = Closed.of(roots, mounts, visible).paths()
    return tuple(dict.fromkeys((*own, *mounts.elsewhere(own), *closed)))


def is_hidden_name(name: str) -> bool:
    """Check whether a directory entry of a home belongs to the hidden part of the home."""
    return name.startswith(".") or name.casefold() in _APPLICATION_DATA


def _is_in_hidden_part(path: str, home: str) -> bool:
    prefix = home.rstrip("/") + "/"
    return path.startswith(prefix) and is_hidden_name(path[len(prefix) :].partition("/")[0])


def _around(path: str, ways: PathSet) -> Iterator[str]:
    """Yield `path`. If it contains a path of `ways`, yield instead the entries of `path` that are closed."""
    if ways.cover(path):
        return
    if not ways.lie_in(path):
        yield path
        return
    with suppress(OSError):
        for name in sorted(os.listdir(path)):
            yield from _around(f"{path}/{name}", ways)


def _targets(home: str, never: tuple[str, ...]) -> Iterator[str]:
    """Yield the targets of a home's hidden links, except targets that are open under their own path."""
    with suppress(OSError):
        for entry in os.scandir(home):
            if is_hidden_name(entry.name) and entry.is_symlink():
                real = os.path.realpath(entry.path)
                if not _is_open_itself(real, home, never):
                    yield real


def _is_open_itself(real: str, home: str, never: tuple[str, ...]) -> bool:
    """Check whether a link's target must stay open, because the task needs the target or every user may read it."""
    if any(inside(one, real) or (one != home and inside(real, one)) for one in never):
        return True
    return not inside(real, home) and may_everybody_read(real)


@lru_cache(maxsize=8)
def _other_homes(own: str) -> tuple[str, ...]:
    """Return the home directories of root and of the other users in the machine's user database. Those in `own` are
    left out."""
    try:
        import pwd
    except ImportError:  # a system without a user database
        return ()
    homes = {os.path.realpath(one.pw_dir) for one in pwd.getpwall() if one.pw_uid == 0 or one.pw_uid >= 1000}
    return tuple(home for home in sorted(homes) if home not in (own, "/") and os.path.isdir(home))


# --- paths that only root can read ------------------------------------------------------------------------------
# The kernel restricts commands of an unprivileged user, but root passes every permission check. Therefore the files
# that the machine's other users cannot read are searched and closed. Examples are `/etc/shadow`, host keys, the
# directory of a database, and the homes of other users.


_PLACES = ("/etc", "/var", "/home", "/root", "/srv", "/opt", "/mnt", "/media", "/usr/local", "/boot")
_MOST_ENTRIES = 60_000
_KEPT_SECONDS = 120.0


def restricted() -> tuple[str, ...]:
    """Return the outermost files and directories that only their owner or group may read. For an unprivileged user
    nothing is returned.

    A directory that contains only such entries is returned instead of them, because each path delays every command.
    The result is cached for two minutes. Paths that have vanished since then are left out, because nothing can be
    mounted over them. On a machine with very many entries only the upper levels are searched.
    """
    if os.geteuid() != 0:
        return ()
    return tuple(place for place in _found(int(time.monotonic() / _KEPT_SECONDS)) if os.path.lexists(place))


def is_restricted(path: str) -> bool:
    """Check, without the cache, whether only the owner or the group may read a resolved path."""
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
    """Search these directories for restricted paths (see `restricted`), without the cache. Blocking."""
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
    # a directory that contains only closed entries is returned as one path
    for directory in reversed(open_directories):
        if len(closed.get(directory, ())) == entries[directory] > 0:
            del closed[directory]
            closed.setdefault(os.path.dirname(directory), []).append(directory)
    for found in closed.values():
        yield from found


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a file or directory. Return None for other objects, which have no content that could be
    read."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else None


def _is_closed(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:  # the path does not exist
        return False
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return plain and not _open_to_all(status.st_mode)


def _open_to_all(mode: int) -> bool:
    if stat.S_ISDIR(mode):
        return bool(mode & stat.S_IXOTH)
    return bool(mode & stat.S_IROTH)
